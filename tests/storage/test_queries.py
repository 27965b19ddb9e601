"""Statements in files: what is read, how it is spelled for each database, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.storage.database import Query
from heliograph.storage.queries import BrokenQueryFile, load_queries, parameters, parse_queries, percent_style


def refused(text: str) -> str:
    """Return why a text is refused."""
    with pytest.raises(BrokenQueryFile) as refusal:
        parse_queries(text, "things.sql")
    return str(refusal.value)


def test_one_text_serves_both_databases() -> None:
    """Each gets its own spelling of the parameters; the names are the file's and the statement's."""
    queries = parse_queries("-- name: get\nSELECT a FROM t\nWHERE b = :b AND c = :c_2;\n", "things.sql")

    assert queries == {
        "get": Query(
            "things.get",
            "SELECT a FROM t\nWHERE b = :b AND c = :c_2",
            "SELECT a FROM t\nWHERE b = %(b)s AND c = %(c_2)s",
        )
    }


def test_a_twin_replaces_the_text_for_its_database_alone() -> None:
    """In whichever order they stand."""
    plain = "-- name: take\nSELECT 1;\n"
    twin = "-- name: take (postgres)\n-- why: it can skip what is locked\nSELECT 2;\n"

    assert parse_queries(plain + twin, "t.sql") == {"take": Query("t.take", "SELECT 1", "SELECT 2")}
    assert parse_queries(twin + plain, "t.sql") == {"take": Query("t.take", "SELECT 1", "SELECT 2")}


def test_two_twins_need_no_plain_text() -> None:
    """Where nothing is shared."""
    text = "-- name: a (sqlite)\n-- why: x\nSELECT 1;\n-- name: a (postgres)\n-- why: y\nSELECT 2;"

    assert parse_queries(text, "t.sql") == {"a": Query("t.a", "SELECT 1", "SELECT 2")}


def test_remarks_are_for_the_reader_and_not_sent() -> None:
    """Whole lines of them; those behind a statement's text stay where they are."""
    text = "-- About this file.\n\n-- name: a\n-- Because.\nSELECT 1 -- one: :not_a_parameter\n"

    assert parse_queries(text, "t.sql")["a"].postgres == "SELECT 1 -- one: :not_a_parameter"


def test_a_file_of_remarks_holds_no_statement() -> None:
    """Nor does an empty one."""
    assert parse_queries("", "t.sql") == parse_queries("-- Nothing yet.\n", "t.sql") == {}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("SELECT 1;", "things.sql: a statement stands before the first name"),
        ("-- name: a\nSELECT 1;\n-- name: a\nSELECT 2;", "things.sql: a stands twice"),
        ("-- name: a\n;\n", "things.sql: a is empty"),
        ("-- name: a\n-- name: b\nSELECT 1;", "things.sql: a is empty"),
        (
            "-- name: A\nSELECT 1;",
            "things.sql: write '-- name: lower_case_word', not '-- name: A'",
        ),
        ("--name: a\nSELECT 1;", "things.sql: write '-- name: lower_case_word', not '--name: a'"),
        ("  -- Name : a\nSELECT 1;", "things.sql: write '-- name: lower_case_word', not '-- Name : a'"),
        (
            "-- name: a (mysql)\n-- why: x\nSELECT 1;",
            "things.sql: a: there is no database 'mysql', only sqlite and postgres",
        ),
        (
            "-- name: a\nSELECT 1;\n-- name: a (sqlite)\nSELECT 2;",
            "things.sql: a: the sqlite twin does not say why",
        ),
        (
            "-- name: a\nSELECT 1;\n-- name: a (sqlite)\n-- why: \nSELECT 2;",
            "things.sql: a: the sqlite twin does not say why",
        ),
        ("-- name: a (sqlite)\n-- why: x\nSELECT 1;", "things.a has no text for postgres"),
        ("-- name: a (postgres)\n-- why: x\nSELECT 1;", "things.a has no text for sqlite"),
        (
            "-- name: a\n0;\n-- name: a (sqlite)\n-- why: x\n1;\n-- name: a (postgres)\n-- why: x\n2;",
            "things.a: both databases have a twin, so its plain text is never used",
        ),
        ("-- name: a\nSELECT 1; SELECT 2;", "things.sql: a is more than one statement"),
        ("-- name: a\nSELECT :Value;", "things.sql: a: a parameter is a lower-case word: :Value"),
        ("-- name: a\nSELECT 'torn;", "things.sql: a: ' opens something that is never closed"),
        ('-- name: a\nSELECT "torn;', 'things.sql: a: " opens something that is never closed'),
        ("-- name: a\nSELECT 1 /* torn;", "things.sql: a: /* opens something that is never closed"),
        (
            r"-- name: a" + "\nSELECT E'it\\'s';",
            "things.sql: a: E'…' is PostgreSQL's own; write a plain literal",
        ),
        (
            "-- name: a\nSELECT :b::text;",
            "things.a: SQLite does not know '::'; write CAST(… AS …), or a twin",
        ),
    ],
)
def test_a_file_that_could_be_misread_is_refused(text: str, why: str) -> None:
    """When the program starts, with the place and the reason."""
    assert refused(text) == why


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("a = :a", "a = %(a)s"),
        ("(:a,:b)", "(%(a)s,%(b)s)"),
        ("CAST(:a AS text)::bigint", "CAST(%(a)s AS text)::bigint"),
        (":a::bigint", "%(a)s::bigint"),
        ("':a' || :a", "':a' || %(a)s"),
        ("'it''s :a' || :a", "'it''s :a' || %(a)s"),
        ('"odd :name" = :a', '"odd :name" = %(a)s'),
        ("/* :a */ :b", "/* :a */ %(b)s"),
        ("1 -- :a\n+ :b", "1 -- :a\n+ %(b)s"),
        ("a LIKE 'x%'", "a LIKE 'x%%'"),
        ("a % :b", "a %% %(b)s"),
        ("$$ :a % $$ || :b", "$$ :a %% $$ || %(b)s"),
        ("$x$ $$ :a $x$ || :b", "$x$ $$ :a $x$ || %(b)s"),
        ("a[1:2]", "a[1:2]"),
        ("", ""),
    ],
)
def test_parameters_are_told_from_what_looks_like_them(text: str, spelled: str) -> None:
    """Not in literals, quoted names, comments, casts or numbers; and a percent sign stays one."""
    assert percent_style(text) == spelled


@given(
    st.lists(st.sampled_from(["'it''s'", '"a"', "--x\n", "/*y*/", "::", ":p", "%", " ", "z", "$$q$$", "1"]))
)
def test_spelling_changes_parameters_and_percent_signs_alone(parts: list[str]) -> None:
    """Whatever stands beside them: taken back, the text is the same."""
    text = " ".join(parts)

    back = percent_style(text).replace("%(p)s", ":p").replace("%%", "%")

    assert back == text
    assert parameters(text) == ({"p"} if ":p" in parts else set())


def test_a_file_is_found_in_its_package() -> None:
    """Also when the package is installed as a wheel."""
    assert "touch" in load_queries("heliograph.storage", "storage.sql")
