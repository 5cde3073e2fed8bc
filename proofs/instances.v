(* Instances: every hypothesis of the theorems is met by something, so that none of them is vacuous.

   Randomized response tells the truth about "some record of the sample is a yes" with probability 3/4. Any two samples have
   ratios of at most 3 = 1 + 2, and moments of at most 7/3 at order 2 and 61/9 at order 3. Over the rationals:

     one_of_two      a sample of 1 of 2 records, order 2: Theorem 9 says 13/6; the data sets below have 4/3
     two_of_four     a sample of 2 of 4 records, order 3: Theorem 9 says 223/36
     filter_runs     an analyst asks for randomized response once and is then refused: the filter's promise, with the numbers
     certificate_of_one_order   a vector on one order is a certificate *)

From mathcomp Require Import all_ssreflect all_algebra all_fingroup.
From mathcomp.analysis Require Import reals sequences exp.
From Cumulant Require Import joint_convexity theorem9_core subsampling conversion filter certificate ledger_rule.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(* The answer is whether some record is a yes, told truly with probability 3/4. *)
Definition response (s : seq bool) (t : bool) : rat := if t == has id s then 3%:Q / 4%:Q else 1 / 4%:Q.

Lemma response_pmf s : pmf (response s).
Proof.
split=> [t|]; first by rewrite /response; case: ifP => _; rewrite divr_ge0 ?ler0z ?ler01.
by rewrite big_bool /response; case: (has id s).
Qed.

Lemma response_order s s' : perm_eq s s' -> response s =1 response s'.
Proof. by move=> ss' t; rewrite /response (perm_has id ss'). Qed.

Lemma response_ratio s s' t : response s t <= (1 + 2%:Q) * response s' t.
Proof. by rewrite /response; case: ifP; case: ifP. Qed.

Lemma response_dominated s s' : dominated (response s) (response s').
Proof. by move=> t; rewrite /response /below; case: ifP; case: ifP. Qed.

(* e^((j-1) eps(j)) of randomized response *)
Definition response_moment (j : nat) : rat := (3%:Q ^+ j + (3%:Q ^+ j.-1)^-1) / 4%:Q.

Lemma response_renyi s s' j : (2 <= j <= 3)%N -> moment j (response s) (response s') <= response_moment j.
Proof.
rewrite /moment big_bool /response /response_moment; move=> /andP[j2 j3].
have [->|->] : j = 2%N \/ j = 3%N by case: j j2 j3 => [|[|[|[|j]]]] //; [left | right].
  by case: (has id s); case: (has id s').
by case: (has id s); case: (has id s').
Qed.

Definition first_yes n (i : 'I_n) : bool := (i == 0%N :> nat).
Definition no_yes n (i : 'I_n) : bool := false.

Theorem one_of_two :
  moment 2 (subsampled 1 response (@first_yes 2)) (subsampled 1 response (@no_yes 2)) <= 13%:Q / 6%:Q.
Proof.
have -> : 13%:Q / 6%:Q = 1 + \sum_(2 <= j < 3) 'C(2, j)%:R * ((1%:R / 2%:R) ^+ j * coefficient response_moment (Some 2%:Q) j).
  by rewrite big_nat1.
apply: (theorem9_symmetric (i0 := ord0)) => //.
- by move=> s _; exact: response_pmf.
- exact: response_order.
- move=> s s' _ _; split; first exact: response_dominated.
    by move=> j /andP[j2 j3]; apply: response_renyi; rewrite j2 (leq_trans j3).
  by move=> e [<-] t; exact: response_ratio.
- by move=> e [<-].
- by case=> -[|i] hi //; rewrite -val_eqE.
Qed.

Theorem one_of_two_truth :
  moment 2 (subsampled 1 response (@first_yes 2)) (subsampled 1 response (@no_yes 2)) = 4%:Q / 3%:Q.
Proof.
have law (X : 'I_2 -> bool) t :
    subsampled 1 response X t = (response [:: X ord0] t + response [:: X (@Ordinal 2 1 isT)] t) / 2%:Q.
  rewrite /subsampled mulrC (eq_bigl (fun S => S \in [set [set ord0]; [set @Ordinal 2 1 isT]])) => [|S]; last first.
    apply/idP/idP => [/cards1P[i ->]|]; rewrite !inE.
      by case: i => -[|[|//]] hi; [apply/orP; left | apply/orP; right]; apply/eqP; congr [set _]; apply: val_inj.
    by case/orP=> /eqP->; rewrite cards1.
  rewrite big_setU1 ?big_set1 /sample ?enum_set1 //.
  by rewrite inE (inj_eq set1_inj) -val_eqE.
by rewrite /moment big_bool !law.
Qed.

Theorem two_of_four :
  moment 3 (subsampled 2 response (@first_yes 4)) (subsampled 2 response (@no_yes 4)) <= 223%:Q / 36%:Q.
Proof.
have -> : 223%:Q / 36%:Q = 1 + \sum_(2 <= j < 4) 'C(3, j)%:R * ((2%:R / 4%:R) ^+ j * coefficient response_moment (Some 2%:Q) j).
  by rewrite big_nat_recr // big_nat1.
apply: (theorem9_symmetric (i0 := ord0)) => //.
- by move=> s _; exact: response_pmf.
- exact: response_order.
- move=> s s' _ _; split; first exact: response_dominated.
    by move=> j; exact: response_renyi.
  by move=> e [<-] t; exact: response_ratio.
- by move=> e [<-].
- by case=> -[|i] hi //; rewrite -val_eqE.
Qed.

(* The filter with one order, lambda = 1: a budget of e^eps = 2 and delta = (1/8) / (3/7) = 7/24 takes one round. *)
Definition filter_delta : rat := 8%:R^-1 / (3%:Q / 7%:Q).
Definition yes_law (h : history bool_finType) : bool -> rat := response [:: true].
Definition no_law (h : history bool_finType) : bool -> rat := response [:: false].
Definition round_discount (h : history bool_finType) (i : unit) : rat := 3%:Q / 7%:Q.
Definition one_round (D : discounts [realFieldType of rat] unit_finType) : bool := 3%:Q / 7%:Q <= D tt.

Lemma rule_of_one (R : realFieldType) (rho : R) : 0 < rho -> 1 - 2%:R / rho <= rho / 8%:R.
Proof.
move=> r0; rewrite ler_subl_addr -(ler_pmul2r r0) mul1r mulrDl divfK ?lt0r_neq0 //.
have e0 : 0 < 8%:R :> R by rewrite ltr0n.
rewrite -(ler_pmul2r e0) mulrDl mulrAC divfK ?lt0r_neq0 // -natrM -expr2 -subr_ge0.
have -> : rho ^+ 2 + (2 * 8)%:R - rho * 8%:R = (rho - 4%:R) ^+ 2.
  by rewrite sqrrB -natrX addrAC; congr (_ - _ + _); rewrite -mulrnAr -mulrnA.
exact: sqr_ge0.
Qed.

Theorem filter_runs d A :
  probability round_discount one_round yes_law d A
  <= 2%:Q * probability round_discount one_round no_law d A + filter_delta.
Proof.
apply: (@mixture_filter_orders rat_realFieldType bool_finType unit_finType yes_law no_law round_discount one_round
  (fun=> 1%N) (fun=> 1) 2%:Q filter_delta).
- by [].
- by rewrite !divr_ge0 ?invr_ge0 ?ler0n ?ler0z.
- by move=> i; exact: ler01.
- by rewrite big_const card_unit /= addr0.
- by move=> h; exact: response_pmf.
- by move=> h; exact: response_pmf.
- by move=> h; exact: response_dominated.
- by move=> h i; rewrite divr_ge0 // ler0z.
- by move=> h i; rewrite /moment big_bool.
- move=> D acc rho r0; rewrite (big_pred1 tt) => [|[] //]; rewrite mul1r expr1.
  apply: le_trans (rule_of_one r0) _; rewrite mulrA mulrC; apply: ler_wpmul2r; first exact: ltW.
  have nz : 3%:Q / 7%:Q != 0 by rewrite mulf_neq0 ?invr_eq0 ?intr_eq0.
  have -> : 8%:R^-1 = filter_delta * (3%:Q / 7%:Q) by rewrite (divfK nz).
  apply: ler_wpmul2l; last exact: acc.
  by rewrite !divr_ge0 ?invr_ge0 ?ler0n ?ler0z.
Qed.

(* What it says of the first answer, and that a second round does not fit. *)
Lemma filter_numbers :
  probability round_discount one_round yes_law 1 (fun h => h == [:: Some true]) = 3%:Q / 4%:Q
  /\ probability round_discount one_round no_law 1 (fun h => h == [:: Some true]) = 1 / 4%:Q
  /\ one_round (after round_discount (after round_discount (fun=> 1) [::]) [:: Some true]) = false.
Proof.
split; first by rewrite /probability /= big_bool.
split; first by rewrite /probability /= big_bool.
by [].
Qed.

(* A vector on one order, lambda = 1, is a certificate: kappa(1) = 1/4. *)
Section OneOrder.
Variables (R : realType) (k eps delta : R).

Theorem certificate_of_one_order : expR (k - eps) / 4%:R <= delta ->
  @certified R unit_finType (fun=> 1) (fun=> 1) eps delta (fun=> expR (- k)) (fun=> 1).
Proof.
have sum1 (x : R) : \sum_(i : unit) x = x by rewrite big_const card_unit /= addr0.
move=> small; split=> [i||i _||]; rewrite ?sum1 ?mulr1 //.
- by split; rewrite ?ler01 // ltW // expR_gt0.
- exact: expR_gt0.
- exact: ltr01.
rewrite !mul1r invr1 ln1 sub0r expK opprK; apply: le_trans small.
rewrite /kappa_real ln1 mulr0 sub0r mulrC; apply: ler_wpmul2l; first by rewrite ltW // expR_gt0.
have two : 1 + 1 = 2%:R :> R by [].
rewrite two expRN mulr_natl mulr2n expRD lnK ?posrE ?ltr0n //.
by rewrite -natrM.
Qed.
End OneOrder.
