"""What the source promises: its order, its walls, and what it does not hold."""

import ast
import functools
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import chain, pairwise
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

Function = ast.FunctionDef | ast.AsyncFunctionDef


def without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, Function | ast.ClassDef) and ast.get_docstring(node):
            node.body[0] = ast.Pass()
    return tree


ROOT = Path(__file__).parent.parent
SOURCE = (ROOT / "commentd.py").read_text("utf-8")
PARTS = dict(re.findall(r"^# -- (\w+) -+\n(.*?)(?=^# -- |\Z)", SOURCE, re.M | re.S))
STATIC = [p for p in (ROOT / "static").rglob("*") if p.suffix in (".js", ".html", ".css")]
TOP = "commentd.py commentd.example.ini pyproject.toml README.md LICENSE .gitignore".split()  # noqa: SIM905
FILES = [ROOT / name for name in TOP] + [
    path
    for folder in ("static", "tests", ".ci")
    for path in (ROOT / folder).rglob("*")
    if path.is_file() and path.suffix not in (".db", ".png", ".pyc")
]


# Not parsed by each worker while it collects.
@functools.cache
def whole_tree() -> ast.Module:
    return ast.parse(SOURCE)


@functools.cache
def part_trees() -> dict[str, ast.Module]:
    return {name: without_docstrings(ast.parse(text)) for name, text in PARTS.items()}


def functions(tree: ast.AST) -> list[Function]:
    return [node for node in ast.walk(tree) if isinstance(node, Function)]


def parts_with(pattern: str) -> set[str]:
    """The parts whose code matches, comments and docstrings aside."""
    return {name for name, tree in part_trees().items() if re.search(pattern, ast.unparse(tree))}


# Order and walls


def test_the_contents_are_the_banners_in_order() -> None:
    about = ast.get_docstring(whole_tree(), clean=False) or ""
    contents = re.findall(r"^    (\w+) {2,}\S", about, re.M)
    assert contents == list(PARTS)
    banners = re.findall("^# --.*", SOURCE, re.M)
    assert len(banners) == len(PARTS)
    assert {len(line) for line in banners} == {79}


def used_by(tree: ast.Module) -> set[str]:
    """The names that a part takes from outside of its own functions, arguments and variables."""
    nodes = list(ast.walk(tree))
    own = {name for node in nodes for name in [*defined(node), *bound(node)]}
    return {node.id for node in nodes if isinstance(node, ast.Name)} - own


def bound(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg


def defined(node: ast.AST) -> Iterator[str]:
    if isinstance(node, Function | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            yield from (n.id for n in ast.walk(target) if isinstance(n, ast.Name))


@functools.cache
def uses() -> dict[str, set[str]]:
    """The parts that each part uses."""
    trees = part_trees()
    homes = {n: part for part, tree in trees.items() for node in tree.body for n in defined(node)}
    return {part: {homes[n] for n in used_by(tree) if n in homes} for part, tree in trees.items()}


def test_each_part_uses_only_what_stands_above_it() -> None:
    order = list(PARTS)
    for part, others in uses().items():
        assert [other for other in others if order.index(other) > order.index(part)] == [], part


SQL = r"(?s)\b(SELECT|INSERT|UPDATE|DELETE|CREATE|PRAGMA|BEGIN|DROP|ALTER)\s.*[A-Za-z_]"


def test_sql_is_only_in_schema_and_store() -> None:
    """And in Moving, for the databases of others, and one that is gone when a file is read."""
    assert parts_with(r"\.execute\w*\(|sqlite3\.connect") == {"Schema", "Store", "Places", "Moving"}
    assert parts_with(r"self\.(run|one|all|value|values)\(") == {"Store"}
    texts = {
        name
        for name, tree in part_trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and re.match(r"\s*" + SQL[4:], str(node.value), re.S)
    }
    assert texts == {"Schema", "Store", "Places", "Moving"}


def test_bottle_is_only_in_plumbing_and_application() -> None:
    assert parts_with(r"\bbottle\.") == {"Plumbing", "Application"}


@pytest.mark.parametrize(
    ("pattern", "where"),
    [
        # Mail judges what World's exceptions mean, by their classes.
        (r"\bsmtplib\.(?!SMTP(Exception|\w+Refused|\w+Error|ResponseException)\b)", {"World"}),
        # Serving waits, and counts its work, whatever the clock says.
        (r"\btime\.(?!(monotonic|thread_time)\b)", {"World"}),
        (r"\bsecrets\.", {"World"}),
        (r"\brandom\.|urandom|uuid", set()),
        (r"\bdatetime\.(now|utcnow|today)\b", set()),
        (r"urllib\.request|http\.client|requests\.", {"World"}),
        (r"\bsubprocess\b|os\.(system|popen|exec)", set()),
        (r"os\.environ|sys\.argv", {"Commands"}),
    ],
)
def test_the_outside_is_reached_only_where_the_contents_say(pattern: str, where: set[str]) -> None:
    assert parts_with(pattern) - where == set()


def callers_of(pattern: str) -> set[str]:
    """The functions that call what is named so."""
    return {
        function.name
        for function in functions(whole_tree())
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and re.fullmatch(pattern, ast.unparse(node.func))
    }


def test_the_network_is_reached_by_one_function_for_the_web_and_one_for_mail() -> None:
    # To the socket file of the settings, to see who listens there.
    assert callers_of(r"(.*\.)?create_connection|socket\.socket(pair)?") == {"refuse_if_taken"}
    web = r"http\.client\.\w+|urllib\.request\..*|(.*\.)?urlopen|client\.request"
    assert callers_of(web) == {"fetch"}
    assert callers_of(r"smtplib\.SMTP(_SSL)?") == {"send_email"}
    # Each of a URL of the settings: of a captcha provider, of a webhook, of a build, of the
    # service; or of the command line.
    hooks = {"post_webhook"}
    others = {"accepts", "check_health_url", "fetched_fragment"}
    assert callers_of(r"(.*\.)?fetch") == hooks | others


def test_no_function_goes_down_a_thread_by_calling_itself() -> None:
    """Nor by others: answers may stand as deep as readers like. Only bare names are followed."""
    known = {f.name: f for f in functions(whole_tree())}
    called = {
        name: {
            node.func.id
            for node in ast.walk(function)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        & known.keys()
        for name, function in known.items()
    }
    below = called
    for _ in known:  # those called by those called
        wider = {n: names.union(*(below[name] for name in names)) for n, names in below.items()}
        if wider == below:
            break
        below = wider
    # `deliver` names two functions. Imports hold no threads, and their JSON has a bounded depth.
    harmless = {"deliver", "deliver_due", "find_recipients", "send_due", "write_emails"}
    harmless |= {"as_text", "items_of_lists"}
    assert {name for name, names in below.items() if name in names} <= harmless


# State


def test_nothing_at_module_level_changes_but_routes_while_it_loads() -> None:
    names = {name for node in whole_tree().body for name in defined(node)}
    mutable = {n for n in names if n.isupper() or n in ("log", "__version__")}
    types = {"Json", "Handler", "Row", "Rows", "Use", "Params", "FileRecord", "LookUp"}
    types |= {"News", "Progress", "Records", "Texts", "Location", "Buttons", "FieldKind", "Strings"}
    types |= {"Arguments", "Entry", "Fetch", "Parser", "RandomBytes", "recipients"}
    functions_and_classes = {
        node.name for node in whole_tree().body if isinstance(node, Function | ast.ClassDef)
    }
    assert names - functions_and_classes - types == mutable
    assert not [node for node in ast.walk(whole_tree()) if isinstance(node, ast.Global)]
    changes = "append|extend|insert|add|update|setdefault|pop|clear|remove|discard"
    held = "|".join(sorted(n for n in mutable if n.isupper()))
    changed = re.findall(rf"\b({held})(?:\.(?:{changes})\(|\[[^\]]*\] (?:[-+|]?=)(?!=))", SOURCE)
    assert changed == ["ROUTES"]
    # What is kept between calls is a constant that is made late, never an answer to someone.
    cached = [
        function
        for function in functions(whole_tree())
        if "cache" in str([ast.unparse(each) for each in function.decorator_list])
    ]
    assert [each.name for each in cached if ast.unparse(each.args)] == []


# Safety


def statements_of(function: Function) -> Iterator[ast.expr]:
    """The SQL that a function runs, as it is written there."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name, owner = node.func.attr, ast.unparse(node.func.value)
            own = owner == "self" and name in ("run", "run_script", "value", "values")
            if own or name.startswith("execute"):
                yield node.args[0]
            elif owner == "self" and name in ("one", "all"):
                yield node.args[1]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "run_statements":
            yield node.args[1]
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in ("sql", "flip"):
            yield node.value


def is_constant(sql: ast.expr) -> bool:
    """A text, a constant of the module, or a choice among those; never a value."""
    match sql:
        case ast.Constant() | ast.Name(id="sql" | "flip" | "statement"):
            return True
        case ast.Name(id=name) | ast.Subscript(value=ast.Name(id=name)):
            return name.isupper() or ast.unparse(sql) == "migrations[version]"
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return is_constant(left) and is_constant(right)
        case ast.JoinedStr():
            pragmas = ("f'PRAGMA user_version = {version + 1}'", "f'PRAGMA {pragma}'")  # of PRAGMAS
            return ast.unparse(sql) in pragmas
        case ast.Attribute():
            return ast.unparse(sql) == "product.sql"  # of the table of products
        case ast.IfExp(body=body, orelse=other):
            return is_constant(body) and is_constant(other)
    return False


def test_sql_is_constants_with_placeholders() -> None:
    found = [(f, sql) for f in functions(whole_tree()) for sql in statements_of(f)]
    assert len(found) > 50
    for function, sql in found:
        if function.name in ("run", "value", "values", "one", "all"):  # they pass it on
            assert ast.unparse(sql) == "sql"
        else:
            assert is_constant(sql), f"{function.name}: {ast.unparse(sql)}"
    for node in ast.walk(whole_tree()):
        if isinstance(node, ast.For) and ast.unparse(node.target) in ("sql", "statement"):
            assert isinstance(node.iter, ast.Tuple)
            assert all(map(is_constant, node.iter.elts))


@pytest.mark.parametrize(
    "pattern",
    [
        r"\b(pickle|marshal|shelve|ctypes)\b",
        r"(?<![.\w])(eval|exec|compile|__import__)\(",
        r"shell=True|\bdebug=True|mmap_size",
        r"_unverified_|CERT_NONE|check_hostname|verify_mode|PROTOCOL_|verify=False",
        r"starttls\((?!context=)|SMTP_SSL\((?!.*context=)",
        r"set_cookie|get_cookie|Allow-Credentials|merge\(|default_app",
        r"interpolation=(?!None)",
        r"(?<![\w.])assert\b",  # `python -O` drops them
    ],
)
def test_dangerous_words_are_absent(pattern: str) -> None:
    assert re.findall(pattern, ast.unparse(whole_tree())) == []


SECRET = re.compile(r"(?i)password|passphrase|secret|token|signature|code\b|\bmac\b|\bkey\b|stored")


def test_secrets_are_compared_in_constant_time() -> None:
    compared = [
        ast.unparse(node)
        for name in PARTS.keys() - {"Settings", "Schema"}  # whose keys are names of settings
        for node in ast.walk(part_trees()[name])
        if isinstance(node, ast.Compare)
        and any(isinstance(op, ast.Eq | ast.NotEq) for op in node.ops)
    ]
    assert len(compared) > 20
    # An absent token is no secret; nor is the status of a reply, a mail server or SQLite.
    harmless = re.compile(
        r"== ''|(status_|smtp_|error)code|\bcode == \d|rowcount|tag ==|\.key (==|!=)|startswith"
    )
    assert [c for c in compared if SECRET.search(c) and not harmless.search(c)] == []
    assert len(re.findall(r"compare_digest\(", SOURCE)) == 1


def test_logs_hold_no_secret_and_no_text_of_readers() -> None:
    logged = [
        ast.unparse(node)
        for node in ast.walk(whole_tree())
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("log.")
    ]
    assert len(logged) >= 8
    assert [s for s in logged if re.search(r"\bf'|%[rs]?' %|\.format\(", s)] == []
    hidden = r"password|token|\bkey\b|\.recipient|\.message\b|\.content|\bip\b|nickname|\.email"
    assert [s for s in logged if re.search(hidden, s)] == []


# Tests


def test_every_function_that_asserts_is_a_test_or_is_used() -> None:
    nodes = {
        path: list(ast.walk(ast.parse(path.read_text("utf-8"))))
        for path in ROOT.glob("tests/**/*.py")
    }
    used = Counter(
        node.id if isinstance(node, ast.Name) else node.attr
        for node in chain.from_iterable(nodes.values())
        if isinstance(node, ast.Name | ast.Attribute)
    )
    for path, (module, *others) in nodes.items():
        methods = {f for node in others if isinstance(node, ast.ClassDef) for f in node.body}
        found = {node for node in others if isinstance(node, Function)} - methods
        tests = [f.name for f in found if f.name.startswith("test")]
        assert not tests or path.name.startswith("test_"), f"pytest does not look into {path.name}"
        assert len(tests) == len(set(tests)), f"{path.name}: a test hides another of its name"
        nested = found - set(module.body)
        assert not [f.name for f in nested if f.name.startswith("test_")]
        for function in found:
            marks = " ".join(map(ast.unparse, function.decorator_list))
            # A decorator may put a function into a list of those that are run.
            if function.name.startswith(("test_", "pytest_")) or marks or used[function.name]:
                continue
            asserts = any(isinstance(node, ast.Assert) for node in ast.walk(function))
            assert not asserts, f"{function.name} never runs"


# What browsers are given


def test_no_script_makes_markup_of_texts() -> None:
    assert STATIC
    unsafe = (
        r"(?i)innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment"
        r"|setHTMLUnsafe|\beval\(|new Function|setTimeout\(\s*['\"`]|javascript:"
    )
    for path in STATIC:
        assert re.findall(unsafe, path.read_text("utf-8")) == [], path.name


def test_pages_hold_nothing_inline_and_nothing_of_others() -> None:
    for path in STATIC:
        text = path.read_text("utf-8")
        if path.suffix == ".html":
            scripts = re.findall(r"<script\b([^>]*)>", text)
            data = re.compile('src=|type="application/(ld[+])?json"')
            assert all(map(data.search, scripts))
            assert re.findall(r"(?i)<style|\sstyle=|\son[a-z]+\s*=|<base|<iframe", text) == []
        linked = re.findall(
            r"""(?:src=|href=|url\(|@import|import\()\s*["']?(?:https?:)?//""", text
        )
        assert linked == [], path.name


def blocks(source: str, opening: str) -> Iterator[str]:
    """The text between the braces of each object literal that begins so."""
    bare = re.sub(r"//.*|/\*.*?\*/", "", re.sub(TEXTS, "''", source))
    for start in re.finditer(opening + r"\{", bare):
        depth = 1
        for mark in re.finditer(r"[{}]", bare[start.end() :]):
            depth += 1 if mark[0] == "{" else -1
            if depth == 0:
                yield bare[start.end() : start.end() + mark.start()]
                break


TEXTS = r"""'(?:[^'\\\n]|\\.)*'(?!\s*:)|"(?:[^"\\\n]|\\.)*"(?!\s*:)|`(?:[^`\\]|\\.)*`"""


def test_every_language_of_a_script_has_the_same_words() -> None:
    seen = 0
    for path in STATIC:
        if path.suffix != ".js":
            continue
        for table in blocks(path.read_text("utf-8"), r"\bTEXTS\s*=\s*"):
            languages = list(blocks(table, r"""['"\w-]+\s*:\s*"""))
            words = [
                re.findall(r"""(?:^|[,{\s])['"]?([\w-]+)['"]?\s*:""", text) for text in languages
            ]
            assert len(words) > 1
            if not any(words):
                continue  # filled by rows: test_words.py has those
            assert len(words[0]) > 5
            words = [[re.sub("_(one|other)$", "", word) for word in each] for each in words]
            for one, other in pairwise([sorted(set(each)) for each in words]):
                assert one == other, path.name
            seen += 1
    assert seen


def test_the_manual_names_what_a_page_may_style_and_say() -> None:
    widget, more = ((ROOT / "static" / name).read_text("utf-8") for name in ("embed.js", "more.js"))
    for folder in (ROOT / "static" / "help").iterdir():
        embed = (folder / "embed.md").read_text("utf-8")
        theme = (folder / "theme.md").read_text("utf-8")
        variable = r"--commentd-\w+"
        assert {*re.findall(variable, theme)} == {*re.findall(variable, widget)}
        attributes = {"lang", *re.findall(r"getAttribute\('(\w+)'\)", widget)}
        table = embed.partition("|---|---|---|\n")[2].partition("\n\n")[0]
        assert attributes == {*re.findall(r"^\| `(\w+)` \| ", table, re.M)}
        events = set(re.findall(r"emit\('(\w+)'", widget + more))
        assert {*re.findall(r"commentd:(\w+)", embed)} == events


# The project as a whole


def test_only_what_the_design_names_lies_at_the_top() -> None:
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("this is no git checkout, or there is no git to ask")
    command = ["git", "-c", "safe.directory=*", "ls-files"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=True)
    tops = {line.split("/")[0] for line in listed.stdout.splitlines()}
    assert {t for t in tops if t[0] != "."} == {t for t in TOP if t[0] != "."} | {"static", "tests"}


def test_no_file_names_a_machine_it_was_made_on() -> None:
    foreign = [
        *(f"/{folder}/" for folder in ("work", "tmp", "root", "mnt")),
        *("pypi" + end for end in (".org", "thonhosted", "-mirror")),
        "python" + "hosted",
        "npm" + "js",
        "registry" + ".npm",
        "prox" + "y.golang",
    ]
    for path in FILES:
        text = path.read_text("utf-8")
        assert [word for word in foreign if word in text] == [], path.name


def test_the_checks_of_the_project_pass() -> None:
    for command in ("ruff format --check .", "ruff check .", "mypy"):
        done = subprocess.run(
            [sys.executable, "-m", *command.split()],
            cwd=ROOT,
            capture_output=True,
            encoding="utf-8",
        )
        assert done.returncode == 0, done.stdout + done.stderr
