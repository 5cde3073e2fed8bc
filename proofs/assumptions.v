(* Prints every definition, then the statement of each listed theorem and what it assumes. `make proofs` compares the output
   with assumptions.txt, and sees that no definition is missing here. *)
Set Printing Width 120.
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.analysis Require Import reals sequences exp.
From Cumulant Require Import joint_convexity theorem9_core subsampling conversion lemma3 proposition11 composition.
From Cumulant Require Import filter certificate chords ledger_rule instances.
Local Open Scope ring_scope.
Print persp.
Print below.
Print pmf.
Print dominated.
Print moment.
Print chi.
Print neighbours.
Print replaced.
Print exchange.
Print sample.
Print subsampled.
Print rate.
Print agree.
Print factor.
Print coefficient.
Print Pr.
Print kappa.
Print renyi_divergence.
Print M_.
Print E_.
Print sum9.
Print mass_moment.
Print all_equal.
Print one_other.
Print chain.
Print transcript.
Print joint.
Print history.
Print discounts.
Print after.
Print law.
Print event.
Print probability.
Print mixture.
Print sound.
Print cumulant.
Print kappa_real.
Print log_moment.
Print certified.
Print discount.
Print response.
Print response_moment.
Print first_yes.
Print no_yes.
Print filter_delta.
Print yes_law.
Print no_law.
Print round_discount.
Print one_round.
Print told.
Print raw.
Print asked.
Print response_charge.
Print asked_charge.
Print within_budget.
Print ledger_probability.
Check persp_jensen.
Print Assumptions persp_jensen.
Check theorem9.
Print Assumptions theorem9.
Check theorem9_symmetric.
Print Assumptions theorem9_symmetric.
Check theorem9_renyi.
Print Assumptions theorem9_renyi.
Check theorem9_dp.
Print Assumptions theorem9_dp.
Check theorem9_rounds.
Print Assumptions theorem9_rounds.
Check lemma3.
Print Assumptions lemma3.
Check proposition11.
Print Assumptions proposition11.
Check corollary10.
Print Assumptions corollary10.
Check moment_rounds.
Print Assumptions moment_rounds.
Check renyi_to_dp.
Print Assumptions renyi_to_dp.
Check renyi_to_dp_sharp.
Print Assumptions renyi_to_dp_sharp.
Check mixture_filter.
Print Assumptions mixture_filter.
Check mixture_filter_orders.
Print Assumptions mixture_filter_orders.
Check mixture_filter_real.
Print Assumptions mixture_filter_real.
Check certificate.
Print Assumptions certificate.
Check certificate_sound.
Print Assumptions certificate_sound.
Check ledger_rule.
Print Assumptions ledger_rule.
Check one_of_two.
Print Assumptions one_of_two.
Check one_of_two_truth.
Print Assumptions one_of_two_truth.
Check two_of_four.
Print Assumptions two_of_four.
Check filter_runs.
Print Assumptions filter_runs.
Check filter_numbers.
Print Assumptions filter_numbers.
Check certificate_of_one_order.
Print Assumptions certificate_of_one_order.
Check ledger_runs.
Print Assumptions ledger_runs.
Check ledger_numbers.
Print Assumptions ledger_numbers.
