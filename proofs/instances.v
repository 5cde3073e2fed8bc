(* Instances: every hypothesis of the theorems is met by something, so that none of them is vacuous.

   Randomized response tells the truth about "some record of the sample is a yes" with probability 3/4. Any two samples have
   ratios of at most 3 = 1 + 2, and moments of at most 7/3 at order 2 and 61/9 at order 3. Over the rationals:

     one_of_two      a sample of 1 of 2 records, order 2: Theorem 9 says 13/6; the data sets below have 4/3
     two_of_four     a sample of 2 of 4 records, order 3: Theorem 9 says 223/36
     filter_runs     an analyst asks for randomized response once and is then refused: the filter's promise, with the numbers
     certificate_of_one_order   a vector on one order is a certificate
     ledger_runs     an analyst asks for randomized response, then for the raw data at an infinite charge: the promise of the
                     ledger's rule with e^eps = 2 and delta = 7/24; ledger_numbers has the probabilities *)

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
apply: (proj2 (theorem9_symmetric (i0 := ord0) _ _ _ _ _ _ _)) => //.
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
apply: (proj2 (theorem9_symmetric (i0 := ord0) _ _ _ _ _ _ _)) => //.
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
- by move=> h i; rewrite divr_ge0 // ler0z.
- by move=> h i _; split; [exact: response_dominated | rewrite /moment big_bool].
- move=> D acc rho r0; rewrite (big_pred1 tt) => [|[] //]; rewrite mul1r expr1.
  apply: le_trans (rule_of_one r0) _; rewrite mulrA mulrC; apply: ler_wpmul2r; first exact: ltW.
  have nz : 3%:Q / 7%:Q != 0 by rewrite mulf_neq0 ?invr_eq0 ?intr_eq0.
  have -> : 8%:R^-1 = filter_delta * (3%:Q / 7%:Q) by rewrite (divfK nz).
  apply: ler_wpmul2l; last exact: acc.
  by rewrite !divr_ge0 ?invr_ge0 ?ler0n ?ler0z.
Qed.

Lemma one_proposal (X : history bool_finType -> bool -> rat) A :
  probability round_discount one_round X 1 A = \sum_t X [::] t * event [realFieldType of rat] A [:: Some t].
Proof.
have first : one_round (after round_discount (fun=> 1) [::]) by rewrite /one_round /after mul1r.
rewrite /probability; have -> : law round_discount one_round X 1 [::] (fun=> 1) (event _ A)
  = if one_round (after round_discount (fun=> 1) [::]) then \sum_t X [::] t * event _ A [:: Some t] else event _ A [:: None] by [].
by rewrite first.
Qed.

(* What it says of the first answer, and that a second round does not fit. *)
Lemma filter_numbers :
  probability round_discount one_round yes_law 1 (fun h => h == [:: Some true]) = 3%:Q / 4%:Q
  /\ probability round_discount one_round no_law 1 (fun h => h == [:: Some true]) = 1 / 4%:Q
  /\ one_round (after round_discount (after round_discount (fun=> 1) [::]) [:: Some true]) = false.
Proof.
by rewrite !one_proposal !big_bool; split; [|split]; apply/eqP; vm_compute.
Qed.

(* A vector on one order, lambda = 1, is a certificate for every sum of charges of at most k: kappa(1) = 1/4. *)
Section OneOrder.
Variables (R : realType) (k eps delta : R).

Theorem certificate_of_one_order (D : unit -> R) : expR (k - eps) / 4%:R <= delta -> expR (- k) <= D tt ->
  @certified R unit_finType (fun=> 1) (fun=> 1) eps delta D (fun=> 1).
Proof.
have sum1 (F : unit -> R) : \sum_i F i = F tt by rewrite (big_pred1 tt) // => -[].
move=> small kD; have D0 : 0 < D tt by apply: lt_le_trans (expR_gt0 _) kD.
split=> [[]||[] _||]; rewrite ?sum1 ?mulr1 ?ltr01 //; first by rewrite ltW // ler01.
rewrite !mul1r invr1 ln1 sub0r; apply: le_trans small.
rewrite [X in _ <= X]mulrC; apply: ler_pmul; [exact/ltW/expR_gt0 | exact/ltW/expR_gt0 | |].
  rewrite /kappa_real ln1 mulr0 sub0r -[1 + 1]/(2%:R) expRN mulr_natl mulr2n expRD lnK ?posrE ?ltr0n //.
  by rewrite -natrM.
by rewrite ler_expR ler_add2r ler_oppl -ler_expR lnK // posrE.
Qed.
End OneOrder.

(* The rule of the ledger with one order, lambda = 1, a budget of eps = log 2 and delta = 7/24. The analyst asks for randomized
   response, whose charge is k = log(7/3), and then for the raw data: its charge is infinite, and its laws share no output. *)
Section LedgerRuns.
Variable R : realType.

Definition told (b t : bool) : R := ratr (response [:: b] t).
Definition raw (b t : bool) : R := (t == b)%:R.
Definition asked (b : bool) (h : history bool_finType) : bool -> R := if h is [::] then told b else raw b.
Definition response_charge : R := ln (7%:R / 3%:R).
Definition asked_charge (h : history bool_finType) (i : unit_finType) : option R :=
  if h is [::] then Some response_charge else None.
Definition within_budget (D : discounts [realFieldType of R] unit_finType) : bool := expR (- response_charge) <= D tt.
Definition ledger_probability (b : bool) (d : nat) (A : history bool_finType -> bool) : R :=
  probability (discount asked_charge) within_budget (asked b) d A.

Let response_gt0 s t : 0 < response s t.
Proof. by rewrite /response; case: ifP => _; rewrite divr_gt0 ?ltr0z ?ltr01. Qed.

Let asked_pmf b h : pmf (asked b h).
Proof.
case: h => [|x h] /=; split=> [t|]; rewrite /told /raw ?ler0n ?ler0q ?(ltW (response_gt0 _ _)) //.
  by rewrite -rmorph_sum (proj2 (response_pmf _)) rmorph1.
by rewrite big_bool; case: (b); rewrite /= ?addr0 ?add0r.
Qed.

Let told_dominated b b' : dominated (told b) (told b').
Proof. by move=> t /eqP; rewrite fmorph_eq0 (gt_eqF (response_gt0 _ _)). Qed.

Let told_cumulant : cumulant (told true) (told false) 1 = 7%:R / 3%:R.
Proof.
rewrite /cumulant (eq_bigr (fun t => ratr (response [:: true] t * (response [:: true] t / response [:: false] t)))).
  rewrite -rmorph_sum big_bool /=.
  have -> : response [:: true] true * (response [:: true] true / response [:: false] true)
    + response [:: true] false * (response [:: true] false / response [:: false] false) = 7%:R / 3%:R by apply/eqP; vm_compute.
  by rewrite fmorph_div !rmorph_nat.
move=> t _; rewrite mul1r lnK; last by rewrite posrE divr_gt0 // ltr0q.
by rewrite /told rmorphM fmorph_div.
Qed.

Let charge_gt0 : 0 < 7%:R / 3%:R :> R.
Proof. by rewrite divr_gt0 ?ltr0n. Qed.

Theorem ledger_runs d A : ledger_probability true d A <= 2%:R * ledger_probability false d A + 7%:R / 24%:R.
Proof.
have two : 2%:R = expR (ln 2%:R) :> R by rewrite lnK // posrE ltr0n.
rewrite two; apply: (@ledger_rule R bool_finType unit_finType _ _ asked_charge within_budget (fun=> 1) (fun=> 1)).
- by rewrite ln_ge0 // ler1n.
- by rewrite divr_ge0 ?ler0n.
- by move=> i; exact: ltr01.
- by rewrite (big_pred1 tt) // => -[].
- exact: asked_pmf.
- exact: asked_pmf.
- move=> [|x h] [] k //= [<-]; split; first exact: told_dominated.
  by rewrite told_cumulant lnK.
- move=> D accepted; exists (fun=> 1); apply: (@certificate_of_one_order R response_charge) => //.
  rewrite expRB !lnK ?posrE ?ltr0n // -!mulrA; apply: ler_wpmul2l; first exact: ler0n.
  by rewrite -!invfM -!natrM.
Qed.

(* The first answer is given, the raw data is refused: 3/4 <= 2 (1/4) + 7/24 for the answer "yes". *)
Theorem ledger_numbers b :
  ledger_probability b 2 (fun h => h == [:: Some true; None]) = (if b then 3%:R else 1) / 4%:R.
Proof.
have yes : within_budget (after (discount asked_charge) (fun=> 1) [::]).
  by rewrite /within_budget /after /discount /= mul1r.
have no t : within_budget (after (discount asked_charge) (after (discount asked_charge) (fun=> 1) [::]) [:: Some t]) = false.
  by rewrite /within_budget /after /discount /= mulr0 leNgt expR_gt0.
rewrite /ledger_probability /probability /= yes big_bool /= !no /event /= mulr1 mulr0 addr0 /told.
by case: b; rewrite /response /= fmorph_div ?rmorph1 ?rmorph_nat.
Qed.
End LedgerRuns.
