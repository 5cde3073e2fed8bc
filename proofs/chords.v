(* Corollary 10 of the paper: between two orders K lies below its chord. Real orders, finite outputs.

   K(l) = log E_p (p/q)^l is `log_moment p q l`, for laws p << q; outputs with p = 0 have no weight.

     log_moment_convex   K(h l + (1-h) l') <= h K(l) + (1-h) K(l'),   0 <= h <= 1, every real l, l'       (Hölder)
     log_moment_natural  e^K(l) = moment (l+1) p q at natural l
     corollary10         K(j) <= u, K(j+1) <= v at a natural j  ->  K(j + h) <= (1-h) u + h v *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.analysis Require Import reals sequences exp.
From Cumulant Require Import joint_convexity theorem9_core filter certificate.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Chords.
Variables (R : realType) (T : finType) (p q : T -> R).
Hypotheses (p_pmf : pmf p) (q_pmf : pmf q) (pq : dominated p q).

Definition log_moment (l : R) : R := ln (cumulant p q l).

Lemma cumulant_gt0 l : 0 < cumulant p q l.
Proof.
have [p0 p1] := p_pmf.
have e0 t : 0 < expR (l * ln (p t / q t)) by exact: expR_gt0.
rewrite lt_def; apply/andP; split; last by apply: sumr_ge0 => t _; rewrite mulr_ge0 // ltW.
apply: contraTneq (oner_neq0 R) => /psumr_eq0P h; rewrite negbK -p1 big1 // => t _.
have /eqP := h (fun t _ => mulr_ge0 (p0 t) (ltW (e0 t))) t isT.
by rewrite mulf_eq0 (negbTE (lt0r_neq0 (e0 t))) orbF => /eqP.
Qed.

Theorem log_moment_convex (h l l' : R) : 0 <= h -> h <= 1 ->
  log_moment (h * l + (1 - h) * l') <= h * log_moment l + (1 - h) * log_moment l'.
Proof.
move=> h0 h1; have [p0 _] := p_pmf.
have c := cumulant_gt0 l; have c' := cumulant_gt0 l'.
rewrite -ler_expR /log_moment lnK ?posrE ?cumulant_gt0 //.
set k := ln (cumulant p q l); set k' := ln (cumulant p q l'); set b := h * k + (1 - h) * k'.
pose v (i : bool) : R := if i then h else 1 - h.
have v0 i : 0 <= v i by case: i; rewrite /v ?subr_ge0.
have v1 : \sum_i v i = 1 by rewrite big_bool /v /= addrC subrK.
have point t : expR ((h * l + (1 - h) * l') * ln (p t / q t))
    <= expR b * (h * (expR (l * ln (p t / q t)) / cumulant p q l)
               + (1 - h) * (expR (l' * ln (p t / q t)) / cumulant p q l')).
  set x := ln (p t / q t).
  pose s (i : bool) : R := if i then l * x - k else l' * x - k'.
  have -> : (h * l + (1 - h) * l') * x = b + \sum_i v i * s i.
    rewrite big_bool /v /s /b /=; move: (1 - h) => h'.
    by rewrite !mulrBr mulrDl !mulrA [RHS]addrACA [h * k + _]addrC subrK [h' * k' + _]addrC subrK.
  rewrite expRD; apply: ler_wpmul2l; first by rewrite ltW // expR_gt0.
  apply: le_trans (jensen_exp v0 v1 s) _.
  by rewrite big_bool /v /s /= !expRB /k /k' !lnK.
apply: le_trans (_ : \sum_t p t * (expR b * (h * (expR (l * ln (p t / q t)) / cumulant p q l)
               + (1 - h) * (expR (l' * ln (p t / q t)) / cumulant p q l'))) <= _).
  by apply: ler_sum => t _; apply: ler_wpmul2l.
rewrite le_eqVlt; apply/orP; left; apply/eqP.
rewrite (eq_bigr (fun t => expR b * (h / cumulant p q l * (p t * expR (l * ln (p t / q t)))
   + (1 - h) / cumulant p q l' * (p t * expR (l' * ln (p t / q t)))))) => [|t _]; last first.
  rewrite mulrCA; congr (_ * _); rewrite mulrDr; congr (_ + _); rewrite mulrCA -!mulrA; congr (_ * _).
    by rewrite [RHS]mulrC -mulrA.
  by rewrite [RHS]mulrC -mulrA.
rewrite -mulr_sumr big_split /= -!mulr_sumr -/(cumulant p q l) -/(cumulant p q l').
by rewrite !divfK ?lt0r_neq0 // addrC subrK mulr1.
Qed.

Lemma log_moment_natural (j : nat) : expR (log_moment j%:R) = moment j.+1 p q.
Proof.
have [p0 _] := p_pmf.
rewrite lnK ?posrE ?cumulant_gt0 //; apply: eq_bigr => t _.
have [pt|ptN] := eqVneq (p t) 0; first by rewrite pt mul0r exprS !mul0r.
have pp : 0 < p t by rewrite lt_def ptN p0.
have qp : 0 < q t by rewrite lt_def (proj1 q_pmf) andbT; apply: contra_neq ptN => /pq.
by rewrite expRMm lnK ?posrE ?divr_gt0 // expr_div_n exprS mulrA.
Qed.

Theorem corollary10 (j : nat) (h u v : R) : 0 <= h -> h <= 1 ->
  moment j.+1 p q <= expR u -> moment j.+2 p q <= expR v ->
  log_moment (j%:R + h) <= (1 - h) * u + h * v.
Proof.
move=> h0 h1 mu mv.
have -> : j%:R + h = h * j.+1%:R + (1 - h) * j%:R.
  by rewrite -addn1 natrD mulrDr mulr1 mulrBl mul1r [RHS]addrC addrA subrK.
apply: le_trans (log_moment_convex _ _ h0 h1) _; rewrite addrC; apply: ler_add.
  by apply: ler_wpmul2l; rewrite ?subr_ge0 // -ler_expR log_moment_natural.
by apply: ler_wpmul2l; rewrite // -ler_expR log_moment_natural.
Qed.

End Chords.
