// SPDX-License-Identifier: GPL-2.0-or-later
//
// walk.js - walks through pages of profiles as somebody does who has a keyboard and hears what a
// screen reader says: it knows roles, names and texts, and nothing of the page's scripts.
//
//	node walk.js PLAYWRIGHT-CORE BROWSER FOLDER PAGE...
//
// FOLDER receives pictures. Prints what fails, and exits with 1 then.
"use strict";

const assert = require("assert");
const path = require("path");

const [playwright, browserPath, folder, ...pages] = process.argv.slice(2);
const {chromium} = require(playwright);
const SIZES = [[360, 740], [1280, 800], [3840, 2160]];
const LIMIT = 150000; // ms until something that should happen counts as hung

const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
	"--disable-background-networking", "--disable-component-update", "--disable-sync"];

// Presses Tab until the focus is on an element of that role and name.
async function tabTo(page, role, name) {
	const wanted = page.getByRole(role, {name});

	for (let i = 0; i < 40; i++) {
		if (await wanted.evaluate(element => element === document.activeElement))
			return wanted;
		await page.keyboard.press("Tab");
	}
	throw new Error(`Tab does not come to ${role} ${name}`);
}

// Waits until a text that says what is shown reads so.
async function statusReads(page, pattern) {
	await page.getByRole("status").filter({hasText: pattern}).first().waitFor({timeout: LIMIT});
}

async function searches(page) {
	await page.keyboard.press("/");
	await page.keyboard.type("^par");
	await page.getByText("1 name, 1 box, 60.00 %").waitFor({timeout: LIMIT});
	await page.keyboard.press("Escape");
}

async function zooms(page) {
	await tabTo(page, "application", /^Flame graph/);
	await page.keyboard.press("ArrowDown");
	await page.keyboard.press("ArrowUp");
	await page.keyboard.press("Enter");
	await statusReads(page, /shown: /);
	await page.goBack();
	await page.waitForFunction(() =>
		!document.querySelector("[role=status]").textContent.includes("shown: "));
}

async function selectsTime(page) {
	await tabTo(page, "application", /^Timeline/);
	await page.keyboard.press("ArrowRight");
	await statusReads(page, / (to|at) 0\.\d+ s/);
	await page.keyboard.press("Escape");
	await statusReads(page, /all of it$/);
}

async function opensViews(page) {
	for (const [key, name] of [["2", "Icicle"], ["3", "Callers"], ["4", "Table"], ["5", "Tree"],
		["1", "Flame graph"]]) {
		await page.keyboard.press(key);
		await page.getByRole("button", {name, pressed: true}).waitFor({timeout: LIMIT});
	}
	await page.keyboard.press("?");
	await page.getByRole("dialog").waitFor({timeout: LIMIT});
	await page.keyboard.press("Escape");
	await page.getByRole("dialog").waitFor({state: "hidden", timeout: LIMIT});
}

// Looks at the page at each size, light and dark: nothing stands beyond the window's right edge.
async function looks(page, name) {
	for (const [width, height] of SIZES) {
		for (const colorScheme of ["light", "dark"]) {
			await page.setViewportSize({width, height});
			await page.emulateMedia({colorScheme});
			const back = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
			const light = Number(back.match(/\d+/)[0]) > 127;

			assert.strictEqual(light, colorScheme === "light", `${colorScheme}: ${back}`);
			const beyond = await page.evaluate(() => Array.from(document.querySelectorAll("body *"))
				.filter(e => e.getBoundingClientRect().right > innerWidth + 1 &&
					e.checkVisibility() && !e.closest(".spoken, #tip, #graph, #heat-area"))
				.map(e => e.id || e.tagName));

			assert.deepStrictEqual(beyond, [], `at ${width} pixels`);
			await page.screenshot({path: path.join(folder, `${name}-${width}-${colorScheme}.png`)});
		}
	}
}

async function walk(context, file) {
	const page = await context.newPage();
	const complaints = [];

	page.on("console", message => {
		if (["error", "warning"].includes(message.type()))
			complaints.push(message.text());
	});
	page.on("pageerror", error => complaints.push(String(error)));
	await page.goto(`file://${path.resolve(file)}`);
	await page.getByRole("button", {name: "Flame graph", pressed: true}).waitFor({timeout: LIMIT});
	await searches(page);
	await zooms(page);
	await selectsTime(page);
	await opensViews(page);
	await looks(page, path.basename(file, ".html"));
	assert.deepStrictEqual(complaints, [], "the page complained");
	await page.close();
}

async function main() {
	const browser = await chromium.launch({executablePath: browserPath, args: FLAGS, timeout: LIMIT});

	try {
		const context = await browser.newContext();

		context.setDefaultTimeout(LIMIT);
		for (const file of pages) {
			await walk(context, file).catch(error => {
				throw new Error(`${file}: ${error.stack}`);
			});
		}
	} finally {
		await browser.close();
	}
}

main().catch(error => {
	console.log(error.message);
	process.exitCode = 1;
});
