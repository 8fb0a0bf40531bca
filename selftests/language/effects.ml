(* SPDX-License-Identifier: GPL-2.0-or-later *)
(*
 * effects.ml - sets effect handlers in effect handlers, for SECONDS of CPU time
 *
 *	effects SECONDS
 *
 * Is compiled together with effects_many.c.
 *
 * body_x is called by nobody but a handler that setter_x sets, and calls any, which calls some setter.
 *)
open Effect
open Effect.Deep

type _ Effect.t += Ask : int -> int Effect.t

let sum = ref 0
let text = String.make 20000 'x'
let turn = ref 0

let[@inline never] work n =
  for i = 1 to n do sum := (!sum * 31 + i) mod 1000003 done

let[@inline never] in_c () = sum := !sum + Char.code (Digest.string text).[0]

(* Some of the arguments are on the stack. *)
external many : int -> int -> int -> int -> int -> int -> int -> int -> int -> int = "many_bytes" "many"

let[@inline never] in_many () = sum := !sum + many 1 2 3 4 5 6 7 8 9

let[@inline never] next () =
  turn := (!turn * 1103515245 + 12345) land 0xffffff;
  (!turn lsr 8) mod 6

let effc : type a r. a Effect.t -> ((a, r) continuation -> r) option = function
  | Ask n -> Some (fun k -> work n; continue k (n + 1))
  | _ -> None

let handler = { retc = (fun x -> x); exnc = raise; effc }

let[@inline always] body any d =
  work 2000;
  let r = perform (Ask 500) in
  in_c ();
  in_many ();
  if d > 0 then sum := !sum + any (d - 1);
  work 3000;
  1 + r

let rec any d =
  match next () with
  | 0 -> 1 + setter_a d
  | 1 -> 1 + setter_b d
  | 2 -> 1 + setter_c d
  | 3 -> 1 + setter_d d
  | 4 -> 1 + setter_e d
  | _ -> 1 + setter_f d

and body_a d = body any d
and setter_a d = 1 + match_with body_a d handler

and body_b d = body any d
and setter_b d = 1 + match_with body_b d handler

and body_c d = body any d
and setter_c d = 1 + match_with body_c d handler

and body_d d = body any d
and setter_d d = 1 + match_with body_d d handler

and body_e d = body any d
and setter_e d = 1 + match_with body_e d handler

and body_f d = body any d
and setter_f d = 1 + match_with body_f d handler

let () =
  let until = float_of_string Sys.argv.(1) in
  while Sys.time () < until do sum := (!sum + any 3) mod 1000 done;
  if !sum = -1 then print_int !sum
