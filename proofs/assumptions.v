(* Prints the statement of each listed theorem and what it assumes; `make proofs` compares the output with assumptions.txt. *)
Set Printing Width 120.
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.analysis Require Import reals sequences exp.
From Cumulant Require Import joint_convexity theorem9_core subsampling conversion lemma3 proposition11 composition.
From Cumulant Require Import filter certificate chords ledger_rule instances.
Local Open Scope ring_scope.
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
Check mixture_filter_real.
Print Assumptions mixture_filter_real.
Check certificate.
Print Assumptions certificate.
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
