# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes a Ruby program that keeps in a mapped word which of its functions runs.

    write(FOLDER): FOLDER/functions.rb, which has the first word of its first argument mapped.

Each function's name tells who calls it: n_0_2 is called by n_0, at one line only. A block, a method or a
fiber lies in the lines of the function that uses it. FOLDER/functions.txt has a line for each function:
name, number, line of the call, first and last line. At lines that end in "#" the number is about to
change.

Before that, the program calls all functions once while Ruby tells it of each call. FOLDER/calls.txt has the
stack of each, the innermost function first, as LABEL@FILE:LINE, separated by tabs. A function in C that is just
called comes before these, as NAME@.
"""
import sys

import written_program

WORK = [
    ['s = j = 0', 'while j < n', ' s += j * j % 7', ' j += 1', 'end'],
    ['s = (1..n).sort_by { |v|', ' -v * 3 % 11', '}.sum'],
    ['s = (1..n).map { |v| v * v }', ' .inject { |a, b|', '  a ^ b', ' }'],
    ['s = 0', 'e = Enumerator.new do |y|', ' (n >> 4).times { |k| y << k }', ' loop { y << n }', 'end',
     '(n >> 3).times {', ' s += e.next', '}'],
    ['s = ("xa" * (n >> 2)).gsub("a") { |m|', ' "bb"', '}.size'],
    ['s = 0', '(n >> 3).times do |k|', ' s += 100 / (k % 3)', 'rescue ZeroDivisionError',
     ' s -= 1', 'ensure', ' s ^= k', 'end'],
    ['c = Class.new do', ' define_method(:made) { |x| x + n }', ' def method_missing(name, *)',
     '  made(name.size)', ' end', ' def respond_to_missing?(*) = true', 'end.new',
     's = (1..n >> 3).sum { c.missing }'],
    ['s = eval("x = n\\n(1..n).reduce { |a, b| a ^ b ^ x }", binding, __FILE__, __LINE__)'],
    ['f = lambda { |k|', ' k > 0 ? 1 + f.(k - 1) : 0', '}', 's = f.(n >> 2)'],
    ['s = Thread.new {', ' catch(:done) { 1.upto(n) { |k| throw :done, k if k * 2 > n } }', '}.value',
     'GC.start if s % 16 == NUMBER % 16'],
]
HEAD = ['$calls = {}',
        '$trace = TracePoint.new(:c_call, :call, :b_call) do |t|',
        ' stack = caller_locations(1).map { |at| "#{at.label}@#{at.path}:#{at.lineno}" }',
        ' stack.unshift("#{t.method_id}@") if t.event == :c_call',
        ' $calls[stack.join("\t")] = true',
        'end',
        '$map = IO::Buffer.new(4096)']
BEGIN = ['def NAME(n) #', ' $map.set_value(:u64, 0, NUMBER) #']
CALL = [' NAME(n) #']
GO_ON = [' $map.set_value(:u64, 0, NUMBER) #', ' (n >> 2).times { |k|', '  s = k', ' }']
END = [' return s #', 'end #']
LOOP = ['$trace.enable', 'n(64)', '$trace.disable',
        "File.write(File.join(__dir__, 'calls.txt'), $calls.keys.join(\"\\n\"))",
        "$map = IO::Buffer.map(File.open(ARGV[0], 'r+'), 4096)",
        'while true', ' n(400) #', 'end']


def write(folder):
    written_program.write(sys.modules[__name__], folder, 'rb')
