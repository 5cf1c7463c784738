import re
from collections import defaultdict

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from privfeat import DPFC, PublicColumns
from privfeat.core.callers.stateless import learns

CATEGORY = {"kind": "category", "categories": ["x", "y"]}
COLUMNS = {
    "age": {"kind": "integer", "bounds": [0, 100], "missing": "indicator"},
    "dose": {"kind": "numeric", "bounds": [1, 100], "treatment": "log"},
    "smoker": {"kind": "boolean", "missing": "neutral"},
    "note": {"kind": "ignored"},
    "clinic": {"kind": "category", "categories": ["Bonn", "Kiel"], "unseen": "neutral"},
    "seen": {"kind": "date", "bounds": ["2020-01-01", "2020-01-03"]},
}
NAMES = ["age", "age_missing", "dose", "smoker", "clinic_Bonn", "clinic_Kiel", "seen"]
TABLE = pd.DataFrame(
    {
        "age": [75, None, 300],
        "dose": ["10", " 1e3 ", "0.1"],
        "smoker": ["yes", "", False],
        "note": ["secret", None, 3.5],
        "clinic": ["Kiel", "Rome", " Bonn"],
        "seen": ["2020-01-02", "2020-01-03T01:00+02:00", "1999-12-31"],
    }
)
FEATURES = [
    [0.5, 0, 0, 1, 0, 1, 0],
    [0, 1, 1, 0, 0, 0, 1 - 1 / 24],
    [1, 0, -1, -1, 1, 0, -1],
]


def test_public_columns_pass_every_check_of_sklearn():
    """Each check hands over columns of one number: it passes where they are declared.

    Where they are not, that is what the error says.
    """
    failures, passed = defaultdict(set), set()
    for n_columns in (1, 2, 3, 4, 5, 10):
        one = {"kind": "numeric", "bounds": [-10, 10], "missing": "neutral"}
        columns = PublicColumns({f"c{i}": one for i in range(n_columns)})
        for result in check_estimator(columns, on_fail=None, on_skip=None):
            if result["status"] == "passed":
                passed.add(result["check_name"])
            elif result["status"] == "failed":
                failures[result["check_name"]].add(str(result["exception"]))
    assert not failures.keys() - passed
    assert len(passed) > 40


def test_public_columns_make_the_features_that_are_stated():
    columns = PublicColumns(COLUMNS)
    np.testing.assert_allclose(columns.fit_transform(TABLE), FEATURES, atol=1e-12)
    assert columns.get_feature_names_out().tolist() == NAMES
    assert columns.n_features_in_ == 6
    assert columns.feature_names_in_.tolist() == list(TABLE.columns)


def test_public_columns_take_a_row_by_itself():
    """A row becomes the same alone, among others, and in any order and type."""
    whole = PublicColumns(COLUMNS).fit(TABLE).transform(TABLE)
    for i in range(len(TABLE)):
        alone = pd.DataFrame([dict(TABLE.iloc[i])])
        np.testing.assert_array_equal(
            PublicColumns(COLUMNS).fit_transform(alone), whole[[i]]
        )
    rest = pd.concat([TABLE.iloc[[2, 0]], TABLE.iloc[[1] * 5]])
    np.testing.assert_array_equal(
        PublicColumns(COLUMNS).fit(TABLE.iloc[:1]).transform(rest),
        whole[[2, 0, *[1] * 5]],
    )


def test_public_columns_learn_nothing_from_rows():
    """What two fits leave behind is the same, and none is needed to transform."""
    one, two = PublicColumns(COLUMNS), PublicColumns(COLUMNS)
    one.fit(TABLE)
    two.fit(TABLE.iloc[[2]])
    assert set(vars(one)) == {"columns", "n_features_in_", "feature_names_in_"}
    assert vars(one)["n_features_in_"] == vars(two)["n_features_in_"]
    np.testing.assert_array_equal(one.feature_names_in_, two.feature_names_in_)
    np.testing.assert_array_equal(
        PublicColumns(COLUMNS).transform(TABLE), one.transform(TABLE)
    )


def test_public_columns_read_an_array_by_the_order_of_columns():
    columns = PublicColumns(COLUMNS)
    rows = [[75, "10", "yes", "x", "Kiel", "2020-01-02"]]
    for given in (rows, np.array(rows, object)):
        np.testing.assert_allclose(columns.fit_transform(given), FEATURES[:1])


@pytest.mark.parametrize("names", [[0, 1], ["smoker", 1]])
def test_a_table_whose_columns_have_no_names_is_refused(names):
    """By place all columns decided one type: True was 1.0 beside decimals."""
    table = pd.DataFrame([[True, 0.5], [False, 0.25]], columns=names)
    declared = {
        "smoker": {
            "kind": "category",
            "categories": ["TRUE", "no"],
            "unseen": "neutral",
        },
        "dose": {"kind": "numeric", "bounds": [0, 1]},
    }
    for read in (PublicColumns(declared).fit, PublicColumns(declared).transform):
        with pytest.raises(TypeError, match=r"names of text.* X\.columns"):
            read(table)


def test_public_columns_find_columns_of_a_table_by_name():
    mixed = TABLE[TABLE.columns[::-1]].drop(columns="note")
    np.testing.assert_allclose(
        PublicColumns(COLUMNS).transform(mixed), FEATURES, atol=1e-12
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.drop(columns="age"), "have column 'age' once, .* got it 0 times"),
        (lambda t: t.assign(weight=1), "column 'weight' is not. Declare it"),
        (
            lambda t: t[["age", *t.columns]],
            "have column 'age' once, .* got it 2 times",
        ),
        (lambda t: t.to_numpy()[:, :5], "the 6 columns that are declared, got 5"),
        (lambda t: np.ma.masked_equal(np.eye(6), 0), "must not be masked arrays"),
        (lambda t: np.full((1, 6), 1j), "Complex data not supported"),
    ],
)
def test_public_columns_refuse_other_columns(change, words):
    with pytest.raises((TypeError, ValueError), match=words):
        PublicColumns(COLUMNS).fit(change(TABLE))


def test_public_columns_work_in_tools_of_sklearn():
    numbers = {name: COLUMNS[name] for name in ("age", "dose")}
    clinic = {"clinic": COLUMNS["clinic"]}
    both = ColumnTransformer(
        [
            ("n", PublicColumns(numbers), ["age", "dose"]),
            ("c", PublicColumns(clinic), ["clinic"]),
        ]
    ).set_output(transform="pandas")
    found = both.fit_transform(TABLE)
    assert list(found.columns) == [
        *("n__age", "n__age_missing", "n__dose", "c__clinic_Bonn", "c__clinic_Kiel")
    ]
    np.testing.assert_allclose(
        found.to_numpy(), np.array(FEATURES)[:, [0, 1, 2, 4, 5]], atol=1e-12
    )
    table, y = pd.concat([TABLE] * 10), np.arange(30) % 3 % 2
    pipeline = make_pipeline(PublicColumns(COLUMNS), DPFC(epsilon=9, classes=[0, 1]))
    assert clone(pipeline).fit(table, y).predict(TABLE).shape == (3,)
    assert pipeline[:-1].set_output(transform="pandas").fit_transform(table).shape == (
        30,
        7,
    )


def test_public_columns_warn_of_raw_columns_of_different_size():
    """By the bounds alone: age, BMI and glucose as they stand in a table."""
    raw = {
        name: {"kind": "numeric", "bounds": bounds, "treatment": "raw"}
        for name, bounds in (
            ("age", [0, 110]),
            ("bmi", [10, 70]),
            ("glucose", [0, 600]),
        )
    }
    with pytest.warns(
        UserWarning, match="raw column 'glucose' .* up to 600, column 'bmi'"
    ):
        PublicColumns(raw).fit([[50, 20, 90]])
    equal = {name: said | {"bounds": [0, 100]} for name, said in raw.items()}
    assert PublicColumns(equal).fit_transform([[50, 20, 900]]).tolist() == [
        [50, 20, 100]
    ]


def test_public_columns_put_a_missing_raw_value_in_the_middle():
    raw = {"kind": "numeric", "bounds": [10, 30], "treatment": "raw"}
    columns = PublicColumns({"a": raw | {"missing": "neutral"}})
    assert columns.fit_transform([[None], [12]]).tolist() == [[20], [12]]


def test_clip_norm_is_half_of_the_largest_norm_of_a_row():
    one = {"kind": "numeric", "bounds": [-30, 40]}
    columns = {"a": one, "b": CATEGORY, "c": {"kind": "ignored"}}
    assert PublicColumns(columns).clip_norm == pytest.approx(2**0.5 / 2)
    columns["a"] = one | {"treatment": "raw"}
    assert PublicColumns(columns).clip_norm == pytest.approx(1601**0.5 / 2)


def test_public_columns_are_no_step_that_learns():
    """So a ledger accepts folds of a pipeline with them."""
    columns = PublicColumns(COLUMNS)
    assert not learns(columns)
    chosen = ColumnTransformer([("a", columns, ["age"])], sparse_threshold=0)
    assert not learns(chosen)


def test_names_out_follow_those_of_the_table():
    columns = PublicColumns(COLUMNS).fit(TABLE)
    assert columns.get_feature_names_out(list(TABLE.columns)).tolist() == NAMES
    with pytest.raises(ValueError, match="not equal to feature_names_in_"):
        columns.get_feature_names_out(list("abcdef"))
    unnamed = PublicColumns({"x": {"kind": "boolean"}}).fit([[1]])
    assert unnamed.get_feature_names_out(["y"]).tolist() == ["x"]
    with pytest.raises(ValueError, match="should have length equal"):
        unnamed.get_feature_names_out(["y", "z"])


def test_public_columns_read_the_types_of_pandas():
    """Nullable numbers, booleans, texts, categories, and times with a zone."""
    times = pd.to_datetime(["2020-01-02T02:00+02:00", None]).tz_convert("Asia/Tokyo")
    table = pd.DataFrame(
        {
            "i": pd.array([2, None], "Int64"),
            "b": pd.array([True, None], "boolean"),
            "s": pd.array(["2.5", None], "string"),
            "c": pd.Categorical(["x", None]),
            "t": times,
        }
    )
    said = {
        "i": {"kind": "integer", "bounds": [0, 2]},
        "b": {"kind": "boolean"},
        "s": {"kind": "numeric", "bounds": [0, 10]},
        "c": CATEGORY,
        "t": COLUMNS["seen"],
    }
    columns = {name: one | {"missing": "neutral"} for name, one in said.items()}
    found = PublicColumns(columns).fit_transform(table)
    assert found.tolist() == [[1, 1, -0.5, 1, 0, 0], [0] * 6]


@pytest.mark.parametrize("batch", [False, True])
def test_a_table_of_arrow_is_read_by_its_names(batch):
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(
        {
            "clinic": pyarrow.array(["Kiel", "Bonn"]).dictionary_encode(),
            "age": pyarrow.array([75, None], pyarrow.int64()),
            "dose": [10.0, 1000.0],
        }
    )
    table = table.to_batches()[0] if batch else table
    declared = {name: COLUMNS[name] for name in ("age", "dose", "clinic")}
    columns = PublicColumns(declared).fit(table)
    expected = [[0.5, 0, 0, 0, 1], [0, 1, 1, 1, 0]]
    assert columns.transform(table).tolist() == expected
    if not batch:
        assert columns.feature_names_in_.tolist() == ["clinic", "age", "dose"]
    with pytest.raises(ValueError, match="'age' once, as it is declared"):
        PublicColumns(declared).transform(table.select(["clinic", "dose"]))


def test_one_error_names_all_columns_with_refused_values():
    bad = TABLE.astype(object)
    bad.loc[bad.index[0], ["age", "smoker"]] = "secret 1234567"
    with pytest.raises(TypeError) as caught:
        PublicColumns(COLUMNS).transform(bad)
    assert re.findall(r"^column '(\w+)'", str(caught.value), re.M) == ["age", "smoker"]
    assert "1234567" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("form", ["string", "category", "polars"])
def test_long_codes_beside_a_gap_stay_what_the_table_has(form):
    """NumPy would make floats of them, in which both are one."""
    codes = [32506021000036107, 32506021000036108, None]
    category = {"kind": "category", "categories": codes[:2], "missing": "neutral"}
    if form == "polars":
        table = pytest.importorskip("polars").DataFrame({"a": codes})
    else:
        texts = [str(code) if code else None for code in codes]
        table = pd.DataFrame({"a": pd.array(texts, dtype="string")})
        table = table.astype({"a": form})
    found = PublicColumns({"a": category}).fit_transform(table)
    assert found.tolist() == [[1, 0], [0, 1], [0, 0]]
