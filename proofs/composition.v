(* Adaptive composition of Rényi moments (Lemma 5 of the paper), and k rounds of Theorem 9, for finite outputs.

   Transcripts of k rounds are k answers. The mechanism of a round is chosen from the answers before it: `P k h` and `Q k h`
   are the laws of answer k after the transcript h, on the two data sets; `joint P k` is the law of the whole transcript.

     moment_chain      moment a of p(t) K(t, u) against q(t) L(t, u) is at most B C,
                       if moment a p q <= B and moment a (K t) (L t) <= C for every t
     moment_rounds     if round i has P << Q and moments of at most B i whatever was answered before, k rounds have
                       P << Q and at most the product of B 0 .. B (k-1): Rényi divergences add
     theorem9_rounds   k rounds, each a mechanism that ignores order on a fresh uniform sample of m of n records, each with
                       the promise of theorem9_symmetric: P << Q, and the moment is at most (1 + SUM_j C(a,j) (m/n)^j c_j)^k. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Cumulant Require Import joint_convexity theorem9_core subsampling.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Chain.
Variables (R : realFieldType) (T U : finType).
Variables (p q : T -> R) (K L : T -> U -> R).

Definition chain (p : T -> R) (K : T -> U -> R) (z : T * U) : R := p z.1 * K z.1 z.2.

Lemma chain_pmf : pmf p -> (forall t, pmf (K t)) -> pmf (chain p K).
Proof.
move=> [p0 p1] kp; split=> [[t u]|]; first by rewrite mulr_ge0 // (proj1 (kp t)).
rewrite -(pair_bigA _ (fun t u => p t * K t u)) /= -p1; apply: eq_bigr => t _.
by rewrite -mulr_sumr (proj2 (kp t)) mulr1.
Qed.

Lemma chain_dominated : dominated p q -> (forall t, dominated (K t) (L t)) -> dominated (chain p K) (chain q L).
Proof.
move=> pq kl [t u]; rewrite /below /chain /= => /eqP; rewrite mulf_eq0 => /orP[/eqP /pq|/eqP /kl] ->; first exact: mul0r.
exact: mulr0.
Qed.

Theorem moment_chain a (B C : R) : (forall t, 0 <= p t) -> (forall t, 0 <= q t) -> 0 <= C ->
  moment a p q <= B -> (forall t, moment a (K t) (L t) <= C) ->
  moment a (chain p K) (chain q L) <= B * C.
Proof.
move=> p0 q0 C0 mB mC.
rewrite /moment -(pair_bigA _ (fun t u => (p t * K t u) ^+ a / (q t * L t u) ^+ a.-1)) /=.
apply: le_trans (_ : \sum_t p t ^+ a / q t ^+ a.-1 * C <= _); last by rewrite -mulr_suml; apply: ler_wpmul2r.
apply: ler_sum => t _.
have -> : \sum_u (p t * K t u) ^+ a / (q t * L t u) ^+ a.-1 = p t ^+ a / q t ^+ a.-1 * moment a (K t) (L t).
  by rewrite mulr_sumr; apply: eq_bigr => u _; rewrite !exprMn invfM mulrACA.
by apply: ler_wpmul2l => //; rewrite divr_ge0 ?exprn_ge0.
Qed.

End Chain.

Section Rounds.
Variables (R : realFieldType) (T : finType).

Fixpoint transcript (k : nat) : finType := if k is k'.+1 then prod_finType (transcript k') T else unit_finType.

Variables (P Q : forall k, transcript k -> T -> R).

Fixpoint joint (X : forall k, transcript k -> T -> R) (k : nat) : transcript k -> R :=
  if k is k'.+1 then chain (@joint X k') (@X k') else fun=> 1.

Hypotheses (P_pmf : forall k h, pmf (@P k h)) (Q_pmf : forall k h, pmf (@Q k h)).

Lemma joint_pmf (X : forall k, transcript k -> T -> R) k : (forall k h, pmf (@X k h)) -> pmf (@joint X k).
Proof.
move=> Xp; elim: k => [|k IH] /=; last by apply: chain_pmf.
by split=> [[]|]; rewrite ?ler01 // big_const card_unit /= addr0.
Qed.

Lemma joint_dominated k : (forall k h, dominated (@P k h) (@Q k h)) -> dominated (@joint P k) (@joint Q k).
Proof.
move=> d; elim: k => [|k IH] /=; last exact: chain_dominated.
by move=> t /eqP; rewrite oner_eq0.
Qed.

Theorem moment_rounds a (B : nat -> R) k :
  (forall i h, dominated (@P i h) (@Q i h) /\ moment a (@P i h) (@Q i h) <= B i) ->
  dominated (@joint P k) (@joint Q k) /\ moment a (@joint P k) (@joint Q k) <= \prod_(i < k) B i.
Proof.
move=> promise; split; first by apply: joint_dominated => i h; case: (promise i h).
elim: k => [|k IH].
  rewrite big_ord0 /moment /= (eq_bigr (fun=> 1)) => [|t _]; last by rewrite !expr1n divr1.
  by rewrite big_const card_unit /= addr0.
have Bk : 0 <= B k.
  have [h _|none] := pickP (predT : pred (transcript k)); last first.
    by have := proj2 (joint_pmf k P_pmf); rewrite big_pred0 // => /esym/eqP; rewrite oner_eq0.
  apply: le_trans (proj2 (promise k h)); apply: sumr_ge0 => t _.
  by rewrite divr_ge0 ?exprn_ge0 // ?(proj1 (P_pmf h)) ?(proj1 (Q_pmf h)).
rewrite big_ord_recr /=; apply: moment_chain => //; last by move=> h; case: (promise k h).
- by move=> t; exact: (proj1 (joint_pmf k P_pmf)).
- by move=> t; exact: (proj1 (joint_pmf k Q_pmf)).
Qed.

End Rounds.

Theorem theorem9_rounds (R : realFieldType) (D : eqType) (T : finType) (n m a k : nat)
    (M : forall i, transcript T i -> seq D -> T -> R) (B : nat -> R) (E : option R) (i0 : 'I_n) (X X' : 'I_n -> D) :
  (0 < m <= n)%N -> (1 < a)%N ->
  (forall i h s, size s = m -> pmf (@M i h s)) ->
  (forall i h s s', perm_eq s s' -> @M i h s =1 @M i h s') ->
  (forall i h s s', size s = m -> replaced s s' ->
     [/\ dominated (@M i h s) (@M i h s'),
         forall j, (2 <= j <= a)%N -> moment j (@M i h s) (@M i h s') <= B j &
         forall e, E = Some e -> forall t, @M i h s t <= (1 + e) * @M i h s' t]) ->
  (forall e, E = Some e -> 0 <= e) ->
  (forall i, i != i0 -> X i = X' i) ->
  let P := @joint R T (fun i h => subsampled m (@M i h) X) k in
  let Q := @joint R T (fun i h => subsampled m (@M i h) X') k in
  dominated P Q /\ moment a P Q <= (1 + \sum_(2 <= j < a.+1) 'C(a, j)%:R * ((m%:R / n%:R) ^+ j * coefficient B E j)) ^+ k.
Proof.
move=> /andP[m0 mn] a1 laws ignores promise E0 XX'; set S := 1 + _.
have pm i h (Z : 'I_n -> D) : pmf (subsampled m (@M i h) Z) by apply: (subsampled_pmf mn) => s sm; exact: laws.
have one i h : dominated (subsampled m (@M i h) X) (subsampled m (@M i h) X')
    /\ moment a (subsampled m (@M i h) X) (subsampled m (@M i h) X') <= S.
  apply: (theorem9_symmetric (i0 := i0)) => //; rewrite ?m0 ?(ltnW a1) //.
  - by move=> s sm; exact: laws.
  - by move=> s s' ss'; exact: ignores.
  - by move=> s s' sm r; exact: promise.
have -> : S ^+ k = \prod_(i < k) S by rewrite prodr_const card_ord.
exact: (@moment_rounds R T _ _ (fun i h => pm i h X) (fun i h => pm i h X') a (fun=> S)).
Qed.
