"""Text and expressions are two spellings of one thing; what is not an expression is refused in one sentence."""

from __future__ import annotations

import pickle
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cumulant as cm
from cumulant.domains import Domain
from cumulant.errors import InputError, NotationError
from cumulant.mechanisms.mechanism import MECHANISMS
from cumulant.notation import DEEPEST_NESTING, LONGEST_TEXT, find_unknown, parse
from cumulant.sampling.scheme import SCHEMES
from tests.effort import drawn
from tests.laws.strategies import parameters

# ---- expressions drawn from the declared domains


def numbers(domain: Domain) -> st.SearchStrategy[str]:
    """Spellings of numbers of a domain: decimals, powers of ten, quotients."""
    low = domain.low if domain.low is not None else Fraction(-1000)
    width = (domain.high if domain.high is not None else low + 1000) - low
    inside = st.builds(lambda top, bottom: low + width * Fraction(top, top + bottom), *(st.integers(1, 10**6),) * 2)
    decimal = st.integers(1, 999).map(lambda thousandth: low + width * Fraction(thousandth, 1000))
    ends = [
        end for end, closed in ((domain.low, domain.low_closed), (domain.high, domain.high_closed)) if closed and end
    ]
    values = st.one_of(inside, decimal, *(st.just(end) for end in ends))
    spellings = [str, lambda x: f"{x.numerator}/{x.denominator}", lambda x: format(float(x), ".12e")]
    return st.builds(lambda value, spelled: spelled(value), values, st.sampled_from(spellings)).filter(
        lambda text: cm.domains.Exact(text) in domain
    )


PLAIN = {
    name: each
    for name, each in MECHANISMS.items()
    if not each.joint and all(isinstance(d, Domain) and not d.integer for d in each.domains.values())
}


@st.composite
def mechanisms(draw: st.DrawFn) -> cm.Mechanism:
    name = draw(st.sampled_from(sorted(MECHANISMS)))
    if name in ("PrivacyProfile", "TradeOff") or MECHANISMS[name].joint:  # not every list, and not every two numbers
        return MECHANISMS[name](**draw(parameters(MECHANISMS[name])))
    if name in PLAIN:
        kind = PLAIN[name]
        return kind(**{each: draw(numbers(domain)) for each, domain in kind.domains.items()})  # type: ignore[arg-type]
    return MECHANISMS[name](**draw(parameters(MECHANISMS[name])))


def schemes() -> st.SearchStrategy[cm.WithoutReplacement]:
    rates = numbers(cm.domains.RATE).map(lambda rate: cm.WithoutReplacement(rate=rate))
    sizes = st.tuples(st.integers(1, 10**6), st.integers(0, 10**6))
    return rates | sizes.map(lambda pair: cm.WithoutReplacement(sample=pair[0], population=sum(pair)))


def sampled(run: cm.Expression, scheme: cm.WithoutReplacement) -> cm.Expression:
    """The run on a sample, of which only the rate is told when a mechanism is stated for another size."""
    try:
        return run @ scheme
    except cm.InputError:
        return run @ cm.WithoutReplacement(rate=scheme.rate)


counts = st.integers(1, 10**9)
expressions = st.recursive(
    mechanisms().filter(lambda one: one.relation is not cm.Relation.ADD_REMOVE),  # these samples are of the other kind
    lambda inner: st.one_of(
        st.builds(lambda run, times: run * times, inner, counts),
        st.builds(lambda left, right: left + right, inner, inner),
        st.builds(sampled, inner, schemes()),
    ),
    max_leaves=6,
)


@settings(max_examples=drawn(80), deadline=None)
@given(expressions)
def test_text_is_the_inverse_of_parse(run: cm.Expression) -> None:
    again = parse(str(run))
    assert again == run
    assert hash(again) == hash(run)
    assert str(again) == str(run)


@settings(max_examples=drawn(40), deadline=None)
@given(expressions)
def test_white_space_means_nothing(run: cm.Expression) -> None:
    text = str(run)
    if '"' not in text:
        assert parse(text.replace(" ", "")) == run
        assert parse(text.replace(" ", "\n\t ")) == run


def test_all_schemes_are_covered() -> None:
    sampling = {"WithoutReplacement", "WithReplacement", "Poisson", "TruncatedPoisson", "RandomAllocation"}
    taking_part = {"BallsInBins", "CyclicPoisson", "FixedOrder", "MinSep"}
    assert set(SCHEMES) == sampling | taking_part | {"Group", "RepeatAndSelect", "Shuffle", "ShuffledBatches", "User"}


# ---- the meaning of the grammar is that of Python

GAUSSIAN, LAPLACE, SAMPLE = cm.Gaussian(sigma=5), cm.Laplace(scale=2), cm.WithoutReplacement(rate="0.001")


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("Gaussian(sigma=5) @ WithoutReplacement(rate=0.001) * 600_000", GAUSSIAN @ SAMPLE * 600_000),
        ("Gaussian(5)*3@WithoutReplacement(0.001)", (GAUSSIAN * 3) @ SAMPLE),
        ("3 * Gaussian(5) @ WithoutReplacement(0.001)", (3 * GAUSSIAN) @ SAMPLE),
        ("3 * (Gaussian(5) @ WithoutReplacement(0.001))", 3 * (GAUSSIAN @ SAMPLE)),
        ("2 * Gaussian(5) * 3 * 4", GAUSSIAN * 24),
        ("Gaussian(5) + 2 * Laplace(2) + Gaussian(5)", GAUSSIAN * 2 + LAPLACE * 2),
        ("(Gaussian(5) + Laplace(2)) * 2 @ WithoutReplacement(0.001)", (GAUSSIAN * 2 + LAPLACE * 2) @ SAMPLE),
        ("((Gaussian((5))))".replace("((5))", "(5)"), GAUSSIAN),
        ("Gaussian(sensitivity=2, sigma=10)", GAUSSIAN),
        ("Gaussian('10', +2)", GAUSSIAN),
        (
            "Gaussian(5.) @ WithoutReplacement(sample=.6e2, population=60_000)",
            GAUSSIAN @ cm.WithoutReplacement(sample=60, population=60_000),
        ),
        ('Laplace("2/1") @ WithoutReplacement("1/1000")', LAPLACE @ SAMPLE),
        ("PureDP(0.1)", cm.PureDP(0.1)),
        ("PureDP(10%) * 1e3", cm.PureDP(0.1) * 1000),
        ("PureDP('10 %') * 1_000", cm.PureDP(0.1) * 1000),
        ("Gaussian(σ=5) @ WithoutReplacement(γ=0.1%)", GAUSSIAN @ SAMPLE),
        (
            "Gaussian(noise_multiplier=2, clip=3, relation='add-remove')",
            cm.Gaussian(6, 3, relation=cm.Relation.ADD_REMOVE),
        ),
        ("Gaussian(noise_multiplier=2, relation='replace-one')", cm.Gaussian(2, 2, geometry="ball")),
        ("ApproximateDP(0.1, 1e-6)", cm.ApproximateDP(0.1, 1e-6)),
        ("ZeroConcentrated(rho=0.1)", cm.ZeroConcentrated(rho=0.1)),
        ("Gaussian(5, relation='add-remove')", cm.Gaussian(5, relation=cm.Relation.ADD_REMOVE)),
        ("from_masses(p=[0.5, '1/2'], q=[0.25, 0.75])", cm.from_masses(["1/2", 0.5], ["1/4", "3/4"])),
        ("from_rdp_points(orders=[2, 4.5], values=[0.1, 3e-1])", cm.from_rdp_points([2, 4.5], [0.1, 0.3])),
    ],
)
def test_meaning(text: str, meant: cm.Expression) -> None:
    assert parse(text) == meant


def test_decimals_keep_their_spelling_and_value() -> None:
    text = "Gaussian(sigma=0.10000000000000000000000000001)"
    assert str(parse(text)) == text
    assert parse(text) != cm.Gaussian(sigma=0.1)
    assert str(parse("Gaussian(sigma=1.50) * 1_000")) == "Gaussian(sigma=1.50) * 1000"


def test_the_unknown_of_a_calibration() -> None:
    assert parse("Gaussian(?) @ WithoutReplacement(rate=0.001) * 10", unknown=5) == GAUSSIAN @ SAMPLE * 10
    assert parse("Gaussian(5) * ?", unknown=7) == GAUSSIAN * 7
    with pytest.raises(NotationError, match=r"^the expression has no '\?' to solve for; write \? for the number"):
        parse("Gaussian(5)", unknown=7)
    with pytest.raises(NotationError, match=r"whole number"):
        parse("Gaussian(5) * ?", unknown=0.5)


@pytest.mark.parametrize(
    ("text", "owner", "name", "others"),
    [
        ("Gaussian(5, ?)", "Gaussian", "sensitivity", {"sigma": "5"}),
        ("Laplace(1) + Gaussian(sigma=?) * 3", "Gaussian", "sigma", {}),
        (
            "Laplace(1) @ WithoutReplacement(population=?, sample=2)",
            "WithoutReplacement",
            "population",
            {"sample": "2"},
        ),
        ("Laplace(1) @ WithoutReplacement(rate=0.5) * ?", "", "times", {}),
        ("RandomizedResponse(p=?)", "RandomizedResponse", "p", {}),  # which cannot be 1
    ],
)
def test_what_the_unknown_stands_for(text: str, owner: str, name: str, others: dict[str, str]) -> None:
    assert find_unknown(text) == (owner, name, others)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Gaussian(5)", r"^the expression has no '\?' to solve for; write"),
        ("Gaussian(?) * ?", r"^the expression has 2 '\?'; leave one and write numbers for the others$"),
        ('Gaussian(?, geometry="cube")', "geometry='cube'"),
        ("Gaussian(?", "unexpected end"),
    ],
)
def test_an_unknown_that_stands_for_nothing(text: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        find_unknown(text)


# ---- what is refused, word by word

FIRST = f"{', '.join(list(MECHANISMS)[:24])} and {len(MECHANISMS) - 24} more"
"""What an error lists of the mechanisms."""

REFUSED = {
    "": "the expression is empty; write for example Gaussian(sigma=5)",
    " \n": "the expression is empty; write for example Gaussian(sigma=5)",
    "Gausian(sigma=1)": "unknown name 'Gausian' at position 0; did you mean 'Gaussian'?",
    "Histogram(sigma=1)": "unknown name 'Histogram' at position 0; ask: cumulant explain histogram",
    "gaussian(sigma=1)": "unknown name 'gaussian' at position 0; did you mean 'Gaussian'?",
    "PureDP(1) @ WithoutReplacment(0.1)": "unknown name 'WithoutReplacment' at position 12; "
    "did you mean 'WithoutReplacement'?",
    "PureDP(1) @ Xyzzy(0.1)": f"unknown name 'Xyzzy' at position 12; known are {', '.join(SCHEMES)}",
    "Xyzzy(1)": f"unknown name 'Xyzzy' at position 0; known are {FIRST}",
    "__import__('os')": f"unknown name '__import__' at position 0; known are {FIRST}",
    "Gaussian(sgma=1)": "Gaussian has no parameter 'sgma' at position 9; did you mean 'sigma'?",
    "PureDP(q=1)": "PureDP has no parameter 'q' at position 7; known are epsilon",
    "Laplace()": "'Laplace' at position 0 needs scale; write Laplace(scale=...)",
    "ApproximateDP()": "'ApproximateDP' at position 0 needs epsilon and delta; "
    "write ApproximateDP(epsilon=..., delta=...)",
    "Gaussian(sigma=1, sigma=2)": "the parameter 'sigma' at position 18 is given twice",
    "Gaussian(1, sigma=2)": "the parameter 'sigma' at position 12 is given twice",
    "Gaussian(sigma=1, 2)": "the value '2' at position 18 has no name but follows a named one; write name=value",
    "PureDP(1, 2)": "the value '2' at position 10 is one too many; PureDP takes epsilon",
    "PureDP(1/2/3)": "unexpected '/' at position 10; a quotient is one of two numbers, such as 256/60000",
    "PureDP(1/-2)": "unexpected '-' at position 9; a quotient is one of two numbers, such as 256/60000",
    "PureDP(1/0.0)": "1/0.0 divides by zero at position 9",
    "PureDP(2*3)": "unexpected '*' at position 8; after a parameter ')' or ',' is expected",
    "PureDP(nan)": "unexpected 'nan' at position 7; a value is a number, and a word is quoted, like \"add-remove\"",
    "PureDP(True)": "unexpected 'True' at position 7; a value is a number, and a word is quoted, like \"add-remove\"",
    "PureDP(,)": "unexpected ',' at position 7; a value is expected, such as 5, 1e-5 or 256/60000",
    "PureDP([1, 2)": "unexpected ')' at position 12; in a list ']' or ',' is expected",
    "PureDP('1)": 'unexpected "\'" at position 7; the quoted text does not end on its line, or holds a backslash',
    "PureDP(?)": "unexpected '?' at position 7: it stands for an unknown, which only calibrate solves; write a number",
    "PureDP(1) * ?": "unexpected '?' at position 12: it stands for an unknown, which only calibrate solves; "
    "write a number",
    "PureDP": "unexpected end at position 6; after PureDP a '(' is expected",
    "PureDP(1": "unexpected end at position 8; after a parameter ')' or ',' is expected",
    "(PureDP(1)": "unexpected end at position 10; for the '(' at position 0 a ')' is expected",
    "PureDP(1))": "unexpected ')' at position 9; after a mechanism come '@', '*', '+', '|' or the end",
    "PureDP(1) +": "unexpected end at position 11; a mechanism is expected, such as Gaussian(sigma=5)",
    "PureDP(1) @": "unexpected end at position 11; a sampling scheme is expected, such as "
    "WithoutReplacement(rate=0.001)",
    "PureDP(1) @ PureDP(1)": "unexpected 'PureDP' at position 12; after '@' comes a sampling scheme: "
    + ", ".join(SCHEMES),
    "WithoutReplacement(0.1)": "unexpected 'WithoutReplacement' at position 0: it draws samples; "
    "write mechanism @ WithoutReplacement(...)",
    "PureDP(1) * 1.5": "unexpected '1.5' at position 12; "
    "a number of repetitions is a whole number >= 1, such as 600000",
    "PureDP(1) * -1": "unexpected '-' at position 12; a number of repetitions is a whole number >= 1, such as 600000",
    "PureDP(1) * True": "unexpected 'True' at position 12; after '*' comes a number of repetitions, such as 600000",
    "PureDP(1) * PureDP(1)": "unexpected 'PureDP' at position 12; "
    "after '*' comes a number of repetitions, such as 600000",
    "3": "unexpected end at position 1; after a number of repetitions '*' is expected",
    "2 * 3 * PureDP(1)": "unexpected '3' at position 4; a mechanism is expected, such as Gaussian(sigma=5)",
    "cm.PureDP(1)": "unexpected '.' at position 2; names have no parts, write Gaussian(sigma=5), or what Python prints "
    "for Gaussian.from_tree(...)",
    "PureDP(1) - PureDP(1)": "unexpected '-' at position 10; after a mechanism come '@', '*', '+', '|' or the end",
    "PureDP(1); 2": "unexpected ';' at position 9; what ran is joined by +, like Gaussian(sigma=5) + Laplace(scale=2)",
    "PureDP(\u0661)": "unexpected '\u0661' at position 7",
}


@pytest.mark.parametrize(("text", "sentence"), REFUSED.items())
def test_refused_notation(text: str, sentence: str) -> None:
    with pytest.raises(NotationError) as refusal:
        parse(text)
    assert str(refusal.value) == sentence


OUTSIDE = {
    "Gaussian()": "Gaussian needs sigma=…, or noise_multiplier=… with clip=… and relation=…",
    "Gaussian(sigma=-1)": "sigma=-1 must be a number in [0, inf)",
    "Gaussian(sigma='nan')": "sigma='nan' must be a number in [0, inf): 'nan' is not a number; "
    "write it like 5, 0.001, 1e-5 or 256/60000",
    "PureDP(1) * 0": "times=0 must be an integer in [1, 1000000000000000000000000000000]",
    "PureDP(1) @ WithoutReplacement(rate=1.2)": "rate=1.2 must be a number in [0, 1]; "
    "for sample and population sizes use WithoutReplacement(sample=…, population=…)",
    "PureDP(1) @ WithoutReplacement(sample=3, population=2)": "sample=3 must be at most population=2",
    "PureDP(1) @ WithoutReplacement()": "WithoutReplacement takes rate=…, or sample=… and population=…",
    "PureDP([1, 2])": "epsilon=['1', '2'] must be a number in [0, inf): ['1', '2'] is not a number; "
    "give an int, float, Fraction, Decimal or text such as '1/3'",
    "from_masses(p=1, q=[1])": "p='1' must be a list, each a number in [0, 1]; write one such as [1, 0.5]",
}


@pytest.mark.parametrize(("text", "sentence"), OUTSIDE.items())
def test_errors_of_the_constructors_pass_through(text: str, sentence: str) -> None:
    with pytest.raises(InputError) as refusal:
        parse(text)
    assert type(refusal.value) is InputError
    assert str(refusal.value) == sentence


def test_mixed_relations_are_refused() -> None:
    with pytest.raises(cm.RelationError):
        parse("Gaussian(1, relation='add-remove') + Gaussian(1) @ WithoutReplacement(0.1)")


def test_only_text_is_read() -> None:
    with pytest.raises(NotationError, match=r"^int is not text"):
        parse(5)  # type: ignore[arg-type]


# ---- size


@pytest.mark.parametrize(
    "text",
    [
        "PureDP(1e999999999)",
        "PureDP(1) * 1" + "0" * 100_000,
        "PureDP(" + "9" * 900_000 + ")",
        "(" * 900_000,
        "(" * 450_000 + "PureDP(1)" + ")" * 450_000,
        "[" * 900_000,
        "PureDP(1)" + "*2@WithoutReplacement(0.5)" * 30_000,
        "PureDP(1)" + "@WithoutReplacement(0.5)" * 30_000,
        "PureDP(1" + " " * 900_000,
        "PureDP('" + "x" * 900_000,
        "x" * 900_000,
        "1_" * 400_000,
    ],
    ids=lambda text: text[:30],
)
def test_bombs_are_refused_in_few_words(text: str) -> None:
    with pytest.raises(InputError) as refusal:
        parse(text)
    assert len(str(refusal.value)) < 500


def test_length_is_bounded() -> None:
    with pytest.raises(NotationError, match=f"^the expression has {LONGEST_TEXT + 1} characters; at most"):
        parse("PureDP(1)".ljust(LONGEST_TEXT + 1))
    assert parse("PureDP(1)".ljust(LONGEST_TEXT)) == cm.PureDP(1)


def test_depth_is_bounded_where_it_is_said_to_be() -> None:
    deepest = "(" * DEEPEST_NESTING + "PureDP(1)" + ")" * DEEPEST_NESTING
    assert parse(deepest) == cm.PureDP(1)
    with pytest.raises(NotationError, match=f"^more than {DEEPEST_NESTING} open parentheses '\\(' at position 50$"):
        parse(f"({deepest})")
    nested = "PureDP(1)" + " * 2 @ WithoutReplacement(0.5)" * DEEPEST_NESTING
    assert parse(str(parse(nested))) == parse(nested)
    with pytest.raises(NotationError, match=f"^more than {DEEPEST_NESTING} samples of samples '@' at position"):
        parse(nested + " * 2 @ WithoutReplacement(0.5)")


def test_ten_thousand_terms() -> None:
    run = parse(" + ".join(f"PureDP({k}e-6) * {k}" for k in range(1, 10_001)))
    assert dict(run.terms) == {cm.PureDP(f"{k}e-6"): k for k in range(1, 10_001)}
    assert parse(str(run)) == run


# ---- nothing but one kind of error

WORDS = st.sampled_from(
    [
        *MECHANISMS,
        *SCHEMES,
        "sigma",
        "rate",
        "p",
        "q",
        "epsilon",
        *"+-*@()[],=?/.\"' ",
        "0.5",
        "1",
        "3",
        "1e400",
        "1e-400",
    ]
)


@settings(max_examples=drawn(150), deadline=None)
@given(st.text(max_size=60) | st.lists(WORDS, max_size=25).map("".join))
def test_any_text_is_an_expression_or_an_input_error(text: str) -> None:
    try:
        run = parse(text)
    except InputError:
        return
    assert parse(str(run)) == run


@pytest.mark.parametrize("digits", [30, 300, 1200])
def test_a_long_exact_rate_reads_back_from_its_own_text(digits: int) -> None:
    rate = Fraction(10**digits + 7, 3 * 10**digits + 1)
    for run in (
        cm.Gaussian(sigma=1) @ cm.WithoutReplacement(rate=rate),
        cm.Laplace(scale=rate) @ cm.Poisson(rate=rate) * 3,
    ):
        assert cm.parse(str(run)) == run
        assert pickle.loads(pickle.dumps(run)) == run
        accountant = cm.Accountant()
        accountant.compose(run)
        assert cm.Accountant.from_json(accountant.to_json()) == accountant
    half = cm.WithoutReplacement(rate=rate)
    if digits < 1000:  # a sample of a sample has a rate that is twice as long
        assert cm.parse(str(cm.Gaussian(sigma=1) @ half @ half)) == cm.Gaussian(sigma=1) @ half @ half


def test_quotients_are_exact() -> None:
    text = "Gaussian(sigma=1) @ WithoutReplacement(rate=256/60000)"
    assert cm.parse(text) == cm.Gaussian(sigma=1) @ cm.WithoutReplacement(rate=Fraction(256, 60_000))
    assert cm.parse("PureDP(0.5/0.25)") == cm.PureDP(2)
    assert cm.parse("PureDP(1/3)") == cm.PureDP(Fraction(1, 3)) != cm.PureDP(1 / 3)
    assert cm.parse(str(cm.parse("PureDP(1/3)"))) == cm.PureDP("1/3")
    assert cm.parse("from_masses(p=[1/3, 2/3], q=[2/3, 1/3])") == cm.from_masses(["1/3", "2/3"], ["2/3", "1/3"])


def test_poisson_samples_by_their_expected_size() -> None:
    run = cm.Gaussian(sigma=1) @ cm.Poisson(sample=256, population=60_000)
    assert run == cm.Gaussian(sigma=1) @ cm.Poisson(rate="256/60000")
    assert str(run) == "Gaussian(sigma=1) @ Poisson(sample=256, population=60000)"
    assert cm.parse(str(run)) == run
    with pytest.raises(cm.InputError, match="sample=3 must be at most population=2"):
        cm.Poisson(sample=3, population=2)
    with pytest.raises(cm.InputError, match="takes rate"):
        cm.Poisson(rate="0.1", sample=1, population=2)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("Gaussian(1) @ Poisson(rate=256/1.2M)", "1.2M at position 31.*write 1200000"),
        ("Gaussian(1) * 10k", "10k at position 14.*write 10000"),
        ("Gaussian(1) @ WithoutReplacement(sample=256, population=1.2M)", "write 1200000"),
        ('Gaussian(1) @ Poisson(rate="256/1.2M")', "1.2M is 1200000"),
    ],
)
def test_letters_behind_numbers_are_spelled_out(text: str, meant: str) -> None:
    with pytest.raises(cm.InputError, match=meant):
        parse(text)
    with pytest.raises(cm.InputError, match=r"1\.2M is 1200000"):
        cm.WithoutReplacement(sample=256, population="1.2M")
