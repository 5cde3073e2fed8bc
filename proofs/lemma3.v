(* Lemma 3 of the paper for finite outputs: (eps, delta) on a uniform sample of m of n records.

   A mechanism M maps a sequence of m records to a mass function on a finite set of outputs. If every event A and every
   two neighbouring sequences of m records have

     P(M s in A) <= L P(M s' in A) + delta,        L = e^eps >= 1,

   then on a uniform sample of rate g = m/n of data sets that differ in one record

     lemma3        P(A) <= (1 + g (L - 1)) Q(A) + g delta.

   Proof: both laws are mixtures over the same pairs (S, i) of subsampling.v. For one pair, a is the probability on the
   exchanged sample with the old record, v that with the new one, and u that on the sample itself; the promise gives
   a <= L min(u, v) + delta, so a - v <= (L - 1) u + delta. *)

From mathcomp Require Import all_ssreflect all_algebra all_fingroup.
From Cumulant Require Import joint_convexity theorem9_core subsampling conversion.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Lemma3.
Variables (R : realFieldType) (D : eqType) (T : finType) (n m : nat).
Hypotheses (m_gt0 : (0 < m)%N) (m_le_n : (m <= n)%N).
Variables (M : seq D -> T -> R) (L delta : R) (i0 : 'I_n) (X X' : 'I_n -> D).
Hypothesis M_pmf : forall s, size s = m -> pmf (M s).
Hypothesis L_ge1 : 1 <= L.
Hypothesis private : forall s s', size s = m -> size s' = m -> neighbours s s' ->
  forall A : {set T}, Pr (M s) A <= L * Pr (M s') A + delta.
Hypothesis one_record : forall i, i != i0 -> X i = X' i.

Let g := rate R n m.
Let couples (z : {set 'I_n} * 'I_n) : bool := (#|z.1| == m) && (z.2 \in z.1).
Let weight : R := (m%:R * 'C(n, m)%:R)^-1.

Let Pr_ge0 s A : size s = m -> 0 <= Pr (M s) A.
Proof. by move=> sm; apply: sumr_ge0 => t _; exact: (proj1 (M_pmf sm)). Qed.

Let Pr_subsampled Z A : Pr (subsampled m M Z) A = \sum_(z | couples z) weight * Pr (M (sample Z z.1)) A.
Proof.
rewrite /Pr (eq_bigr _ (fun t _ => subsampled_couples m_gt0 M Z t)) exchange_big /=.
by apply: eq_bigr => z _; rewrite mulr_sumr.
Qed.

Let Pr_difference A :
  Pr (subsampled m M X) A - Pr (subsampled m M X') A
  = \sum_(z | couples z) weight *
      (g * (Pr (M (sample X (exchange i0 z.2 z.1))) A - Pr (M (sample X' (exchange i0 z.2 z.1))) A)).
Proof.
rewrite /Pr -sumrB (eq_bigr _ (fun t _ => subsampled_difference m_gt0 m_le_n M t one_record)) exchange_big /=.
apply: eq_bigr => z _; rewrite -mulr_sumr; congr (_ * _).
by rewrite -mulr_sumr sumrB.
Qed.

Theorem lemma3 (A : {set T}) :
  Pr (subsampled m M X) A <= (1 + g * (L - 1)) * Pr (subsampled m M X') A + g * delta.
Proof.
have g0 : 0 <= g by exact: rate_ge0.
have w0 : 0 <= weight by exact: weight_ge0.
rewrite mulrDl mul1r -addrA -ler_subl_addl Pr_difference Pr_subsampled.
have -> : g * delta = \sum_(z | couples z) weight * (g * delta).
  by rewrite -mulr_suml (weights R m_gt0 m_le_n) mul1r.
rewrite mulr_sumr -big_split /=; apply: ler_sum => -[S i] /andP[/= /eqP Sm iS].
have zX Z : size (sample Z (exchange i0 i S)) = m by apply: size_sample; rewrite exchange_card.
have zS : size (sample X' S) = m by apply: size_sample.
rewrite [X in _ <= X + _]mulrCA -mulrDr; apply: ler_wpmul2l => //.
rewrite -[g * (L - 1) * _]mulrA -mulrDr; apply: ler_wpmul2l => //.
set a := Pr (M (sample X (exchange i0 i S))) A; set v := Pr (M (sample X' (exchange i0 i S))) A.
set u := Pr (M (sample X' S)) A.
have au : a <= L * u + delta by apply: private => //; exact: neighbours_exchange.
have av : a <= L * v + delta.
  by apply: private => //; apply: (@neighbours_with D n i0 X X') => //; apply: exchange_mem.
have L0 : 0 <= L - 1 by rewrite subr_ge0.
rewrite mulrBl mul1r; have [uv|vu] := leP u v.
  apply: le_trans (_ : L * u + delta - v <= _); first by rewrite ler_add2r.
  by rewrite addrAC ler_add2r ler_add2l ler_opp2.
apply: le_trans (_ : L * v + delta - v <= _); first by rewrite ler_add2r.
rewrite addrAC ler_add2r -[X in _ - X <= _]mul1r -[X in _ <= _ - X]mul1r -!mulrBl.
by apply: ler_wpmul2l => //; exact: ltW.
Qed.

End Lemma3.
