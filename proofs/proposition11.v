(* Proposition 11 of the paper for finite outputs: the data sets that need almost what Theorem 9 promises.

   X' has n equal records x, X has the record x' in the place i0 and x in all others. With q the law of the mechanism on m
   copies of x, and p that on x' and m - 1 copies of x, a mechanism that ignores the order of its sample has

     sampled_equal    subsampled X' = q
     sampled_mixture  subsampled X  = (1-g) q + g p,        g = m/n
     proposition11    moment a (subsampled X) (subsampled X')
                        = (1-g)^a + a g (1-g)^(a-1) + SUM_{j=2}^a C(a,j) g^j (1-g)^(a-j) moment j p q

   an equality, so that no bound on the sampled mechanism can be smaller. In the letters of the paper moment j p q is
   e^((j-1) eps(j)), if this pair attains eps(j) for every j. *)

From mathcomp Require Import all_ssreflect all_algebra all_fingroup.
From Cumulant Require Import joint_convexity theorem9_core subsampling.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Mixture.
Variables (R : realFieldType) (T : finType) (p q : T -> R) (g : R) (a : nat).
Hypotheses (a_gt0 : (0 < a)%N) (p_pmf : pmf p) (q_pmf : pmf q) (pq : dominated p q).

(* The moments of p against q; that of order 0 is the mass of q. *)
Definition mass_moment (j : nat) : R := if j is 0 then 1 else moment j p q.

Let share (j : nat) (t : T) : R := if j is j'.+1 then p t ^+ j'.+1 / q t ^+ j' else q t.

Let pointwise t :
  ((1 - g) * q t + g * p t) ^+ a / q t ^+ a.-1 = \sum_(j < a.+1) 'C(a, j)%:R * ((1 - g) ^+ (a - j) * g ^+ j * share j t).
Proof.
have [q0|qN0] := eqVneq (q t) 0.
  rewrite (pq q0) q0 !mulr0 addr0 expr0n (negbTE (lt0n_neq0 a_gt0)) mul0r big1 // => -[[|j] ja] _ /=.
    by rewrite q0 !mulr0.
  by rewrite (pq q0) expr0n /= mul0r !mulr0.
have qX k : q t ^+ k != 0 by rewrite expf_neq0.
have -> : (1 - g) * q t + g * p t = q t * ((1 - g) + g * (p t / q t)).
  by rewrite mulrDr [q t * (1 - g)]mulrC; congr (_ + _); rewrite mulrCA [q t * _]mulrC divfK.
rewrite exprMn [_ ^+ a * _]mulrC -mulrA.
have -> : q t ^+ a / q t ^+ a.-1 = q t by case: a a_gt0 => // b _; rewrite exprS mulfK.
rewrite exprDn mulr_suml; apply: eq_bigr => -[j ja] _ /=.
rewrite -[_ *+ 'C(a, j)]mulr_natl -[_ * q t]mulrA; congr (_ * _).
rewrite exprMn -[_ * _ * q t]mulrA -[_ * g ^+ j * share j t]mulrA; congr (_ * _).
rewrite -mulrA; congr (_ * _).
case: j ja => [|j] ja /=; first by rewrite expr0 mul1r.
by rewrite expr_div_n -mulrA; congr (_ * _); rewrite exprS invfM mulrC mulVKf.
Qed.

Theorem mixture_moment :
  moment a (fun t => (1 - g) * q t + g * p t) q
  = \sum_(j < a.+1) 'C(a, j)%:R * ((1 - g) ^+ (a - j) * g ^+ j * mass_moment j).
Proof.
rewrite /moment (eq_bigr _ (fun t _ => pointwise t)) exchange_big /=; apply: eq_bigr => -[j ja] _ /=.
rewrite -!mulr_sumr; congr (_ * (_ * _)).
by case: j {ja} => [|j] /=; rewrite ?(proj2 q_pmf).
Qed.

End Mixture.

Section DataSets.
Variables (R : realFieldType) (D : eqType) (T : finType) (n m a : nat) (M : seq D -> T -> R).
Variables (i0 : 'I_n) (x x' : D).
Hypotheses (m_gt0 : (0 < m)%N) (m_le_n : (m <= n)%N) (a_gt0 : (0 < a)%N).
Hypothesis laws : forall s, size s = m -> pmf (M s).
Hypothesis ignores_order : forall s s', perm_eq s s' -> M s =1 M s'.

Definition all_equal (i : 'I_n) : D := x.
Definition one_other (i : 'I_n) : D := if i == i0 then x' else x.

Let q := M (nseq m x).
Let p := M (x' :: nseq m.-1 x).
Let g := rate R n m.

Hypothesis pq : dominated p q.

Let sample_equal (S : {set 'I_n}) : sample all_equal S = nseq #|S| x.
Proof. by rewrite /sample cardE; elim: (enum S) => //= i s ->. Qed.

Let q_pmf : pmf q. Proof. by apply: laws; rewrite size_nseq. Qed.
Let p_pmf : pmf p. Proof. by apply: laws; rewrite /= size_nseq prednK. Qed.

Lemma sampled_equal t : subsampled m M all_equal t = q t.
Proof.
rewrite /subsampled (eq_bigr (fun=> q t)) => [|S /eqP Sm]; last by rewrite sample_equal Sm.
rewrite sumr_const.
have -> : #|[pred S : {set 'I_n} | #|S| == m]| = 'C(n, m).
  by rewrite -[in RHS](card_ord n) -card_draws cardsE.
by rewrite -[q t *+ _]mulr_natl mulrA mulVf ?mul1r // pnatr_eq0 -lt0n bin_gt0.
Qed.

Let without (S : {set 'I_n}) : i0 \notin S -> #|S| = m -> M (sample one_other S) = q.
Proof.
move=> S0 Sm; rewrite (@sample_agree D n i0 one_other all_equal S) // ?sample_equal ?Sm // => i.
by rewrite /one_other => /negbTE ->.
Qed.

Let with_other (S : {set 'I_n}) t : i0 \in S -> #|S| = m -> M (sample one_other S) t = p t.
Proof.
move=> S0 Sm; apply: ignores_order; apply: perm_trans (sample_pick one_other S0) _.
rewrite /one_other eqxx perm_cons -/one_other (@sample_agree D n i0 one_other all_equal) ?setD11 //.
  by rewrite sample_equal -Sm (cardsD1 i0 S) S0.
by move=> i; rewrite /one_other => /negbTE ->.
Qed.

Lemma sampled_mixture t : subsampled m M one_other t = (1 - g) * q t + g * p t.
Proof.
have h : agree i0 one_other all_equal by move=> i; rewrite /one_other => /negbTE ->.
have := subsampled_difference m_gt0 m_le_n M t h; rewrite sampled_equal.
rewrite (eq_bigr (fun z => (m%:R * 'C(n, m)%:R)^-1 * (g * (p t - q t)))) => [|[S i] /andP[/= /eqP Sm iS]]; last first.
  by rewrite with_other ?exchange_card ?exchange_mem // sample_equal exchange_card Sm.
rewrite -mulr_suml (weights R m_gt0 m_le_n) mul1r => /eqP; rewrite subr_eq => /eqP ->.
by rewrite mulrBr mulrBl mul1r addrC addrA addrAC.
Qed.

Theorem proposition11 :
  moment a (subsampled m M one_other) (subsampled m M all_equal)
  = \sum_(j < a.+1) 'C(a, j)%:R * ((1 - g) ^+ (a - j) * g ^+ j * mass_moment p q j).
Proof.
rewrite -(mixture_moment g a_gt0 q_pmf pq).
by apply: eq_bigr => t _; rewrite sampled_mixture sampled_equal.
Qed.

End DataSets.
