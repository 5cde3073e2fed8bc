(* The rule of the ledger, whole: the filter of filter.v with the certificate that the code looks for.

   Orders lam_i with weights w_i > 0 of sum at most 1. A proposal has charges k_i, None for an infinite one. A finite charge
   says that P << Q and bounds the logarithm of E_P e^(lam_i loss); an infinite charge says nothing. The rule may accept only if it holds a vector v of probabilities on
   the orders whose charges are finite so far, K_i the sum of the charges of order i, with

     lb = SUM v_i lam_i > 0,   Kb = SUM v_i (K_i + log(v_i / w_i)),   kappa(lb) e^(Kb - lb eps) <= delta.

     certificate_sound   such a vector proves the hypothesis of the filter
     ledger_rule         every event of every transcript of an analyst who adapts to every answer and every refusal has
                         P(A) <= e^eps Q(A) + delta *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.analysis Require Import reals sequences exp.
From Cumulant Require Import joint_convexity theorem9_core filter certificate.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Certified.
Variables (R : realType) (I : finType) (w lam : I -> R) (eps delta : R).

(* D i = e^(-K_i), 0 where the charges of order i are infinite. *)
Definition certified (D v : I -> R) : Prop :=
  [/\ forall i, 0 <= D i /\ 0 <= v i, \sum_i v i = 1, forall i, 0 < v i -> 0 < D i,
      0 < \sum_i v i * lam i &
      kappa_real (\sum_i v i * lam i)
        * expR (\sum_i v i * (ln (v i / w i) - ln (D i)) - (\sum_i v i * lam i) * eps) <= delta].

Hypothesis w_gt0 : forall i, 0 < w i.

Theorem certificate_sound (D v : I -> R) : certified D v ->
  forall L : R, 1 - expR (eps - L) <= delta * \sum_i w i * D i * expR (lam i * L).
Proof.
move=> [Dv0 v1 vD l0 small] L.
have D0 i : 0 <= D i by case: (Dv0 i).
have v0 i : 0 <= v i by case: (Dv0 i).
set lb := \sum_i v i * lam i in l0 small *; set Kb := \sum_i v i * (_ - _) in small *.
have mix : expR (lb * L - Kb) <= \sum_i w i * D i * expR (lam i * L).
  have -> : lb * L - Kb = \sum_i v i * (lam i * L - (ln (v i / w i) - ln (D i))).
    by rewrite /lb /Kb mulr_suml -sumrB; apply: eq_bigr => i _; rewrite -mulrA -mulrBr.
  apply: le_trans (jensen_exp v0 v1 _) _; apply: ler_sum => i _.
  have [vi|viN] := eqVneq (v i) 0.
    by rewrite vi mul0r mulr_ge0 ?(ltW (expR_gt0 _)) // mulr_ge0 // ltW.
  have vp : 0 < v i by rewrite lt_def viN v0.
  rewrite expRB expRB !lnK ?posrE ?divr_gt0 // ?vD //.
  rewrite [v i * _]mulrCA [X in _ <= X]mulrC; apply: ler_wpmul2l; first by rewrite ltW // expR_gt0.
  rewrite le_eqVlt; apply/orP; left; apply/eqP.
  by rewrite !invf_div mulrCA [v i * _]mulrC -[w i / v i * v i]mulrA mulVf ?lt0r_neq0 // mulr1 mulrC.
have d0 : 0 <= kappa_real lb * expR (Kb - lb * eps) by rewrite mulr_ge0 // ltW // expR_gt0.
apply: le_trans (ler_pmul d0 (ltW (expR_gt0 _)) small mix).
have := kappa_real_tangent (L - eps) l0; rewrite opprB => /le_trans; apply.
have -> : lb * (L - eps) = (Kb - lb * eps) + (lb * L - Kb) by rewrite mulrBr [RHS]addrC addrA subrK.
by rewrite expRD mulrA.
Qed.
End Certified.

Section Rule.
Variables (R : realType) (T I : finType).
Variables (P Q : history T -> T -> R) (charge : history T -> I -> option R) (accept : discounts R I -> bool).
Variables (lam w : I -> R) (eps delta : R).

Definition discount (h : history T) (i : I) : R := if charge h i is Some k then expR (- k) else 0.

Theorem ledger_rule :
  0 <= eps -> 0 <= delta -> (forall i, 0 < w i) -> \sum_i w i <= 1 ->
  (forall h, pmf (P h)) -> (forall h, pmf (Q h)) ->
  (forall h i k, charge h i = Some k -> dominated (P h) (Q h) /\ cumulant (P h) (Q h) (lam i) <= expR k) ->
  (forall D, accept D -> exists v, certified w lam eps delta D v) ->
  forall d A, probability discount accept P d A <= expR eps * probability discount accept Q d A + delta.
Proof.
move=> e0 d0 w0 w1 pP pQ ch ac d A.
apply: (mixture_filter (pow := fun i x => expR (lam i * ln x)) (w := w)) => //.
- by rewrite -[X in X <= _](expR0 R) ler_expR.
- by move=> i; rewrite ltW.
- by move=> i x _; rewrite ltW // expR_gt0.
- by move=> i x y x0 y0; rewrite lnM ?posrE // mulrDr expRD.
- by move=> h i; rewrite /discount; case: (charge h i) => // k; rewrite ltW // expR_gt0.
- move=> h i; rewrite /discount; case E: (charge h i) => [k|]; last by rewrite ltxx.
  by case: (ch _ _ _ E) => PQ bound _; rewrite expRN ler_pdivr_mull ?expR_gt0 // mulr1.
- move=> D /ac[v cv] rho r0; have := certificate_sound w0 cv (ln rho).
  by rewrite expRB lnK // posrE.
Qed.
End Rule.
