"""Small wrong changes to a C file, one at a time. Knows tokens, not grammar: what it gets wrong
does not compile and is not counted."""
import re
from dataclasses import dataclass

TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
    |(?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    |(?P<directive>^[ \t]*\#(?:\\\n|[^\n])*)
    |(?P<number>0[xX][0-9a-fA-F.]+(?:[pP][-+]?\d+)?[uUlLfF]*
        |(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?[uUlLfF]*)
    |(?P<name>[A-Za-z_]\w*)
    |(?P<op>->|\.\.\.|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||\+\+|--|[-+*/%&|^]=|[^\s\w])""",
    re.S | re.M | re.X)

SWAPS = {
    "<": ["<=", ">="], "<=": ["<", ">"], ">": [">=", "<="], ">=": [">", "<"],
    "==": ["!="], "!=": ["=="], "&&": ["||"], "||": ["&&"],
    "+": ["-"], "-": ["+"], "*": ["/"], "/": ["*"], "%": ["*"], "&": ["|"], "|": ["&"],
    "^": ["|"], "<<": [">>"], ">>": ["<<"], "+=": ["-="], "-=": ["+="], "*=": ["/="],
    "/=": ["*="], "|=": ["&="], "&=": ["|="], "++": ["--"], "--": ["++"],
}
NAMES = {"fmin": "fmax", "fmax": "fmin", "smaller": "larger", "larger": "smaller",
         "true": "false", "false": "true",
         "fabs": "", "EDOM": "ERANGE", "ERANGE": "EDOM"}
BINARY = {"+", "-", "*", "&"} # may be unary as well
TYPES = set("const static struct union enum double float int bool unsigned signed char long "
            "short void volatile _Atomic _Bool extern register".split())
CONTROL = {"if", "for", "while", "switch"}
WORDS = CONTROL | set("return case else do sizeof goto break continue default".split())
COMBINERS = {"ANY", "ALL", "ALWAYS", "NEVER"}


@dataclass
class Token:
    kind: str
    text: str
    start: int
    end: int
    area: str = ""      # "code", "table", "define" or nowhere
    block: bool = False # a { or } of a block of statements


@dataclass
class Mutant:
    file: str
    start: int
    end: int
    new: str
    line: int  # from 1
    text: str  # of that line, stripped
    what: str  # "< -> <=", with " #2" when it is the second such on the line

    def key(self):
        return f"{self.file} | {self.text} | {self.what}"


def is_type(tokens, i):
    t = tokens[i]
    return t.kind == "name" and (t.text in TYPES or t.text.endswith("_t") or
                                 (i > 0 and tokens[i - 1].text in ("struct", "enum", "union")))


def tokenize(source):
    tokens = []
    for m in TOKEN.finditer(source):
        kind, text, at = m.lastgroup, m.group(), m.start()
        if kind == "comment":
            continue
        if kind != "directive":
            tokens.append(Token(kind, text, at, m.end()))
            continue
        d = re.match(r"[ \t]*#[ \t]*define[ \t]+\w+(\([^)]*\))?", text)
        if not d or d.group(1): # of macros only the constants
            continue
        for t in TOKEN.finditer(text, d.end()):
            if t.lastgroup in ("number", "name", "op") and t.group() != "\\":
                tokens.append(Token(t.lastgroup, t.group(), at + t.start(), at + t.end(),
                                    "define"))
    return tokens


def partners(tokens):
    """Index of the bracket that belongs to each bracket."""
    open_, out = [], {}
    for i, t in enumerate(tokens):
        if t.kind == "op" and t.text in "([{":
            open_.append(i)
        elif t.kind == "op" and t.text in ")]}":
            j = open_.pop()
            out[i], out[j] = j, i
    return out


def lay_out(tokens):
    """Marks which tokens are code and which are rows of tables; the rest is declarations."""
    pair = partners(tokens)
    stack = [] # kinds of the braces around: "body", "block", "table", "struct"
    skip_until = -1
    for i, t in enumerate(tokens):
        if t.area == "define":
            continue
        if t.text in ("static_assert", "_Static_assert"):
            skip_until = pair[i + 1]
        if t.text == "{":
            stack.append(brace_kind(tokens, i, pair, stack))
            t.block = stack[-1] in ("body", "block")
        elif t.text == "}":
            t.block = stack.pop() in ("body", "block")
        if i <= skip_until or "struct" in stack:
            continue
        if "table" in stack:
            t.area = "table"
        elif "body" in stack:
            t.area = "code"
    return pair


def brace_kind(tokens, i, pair, stack):
    before = tokens[i - 1]
    if before.text == "=":
        # An initialiser of an array is a table, that of one struct is code.
        return "table" if not stack or tokens[i - 2].text == "]" else "literal"
    if stack and stack[-1] in ("table", "literal"):
        return stack[-1]
    if not stack:
        return "body" if before.text == ")" else "struct"
    if before.text == ")":
        return "block" if tokens[pair[i - 1] - 1].text in CONTROL else "literal"
    return "struct" if before.kind == "name" and before.text not in WORDS else "block"


def is_cast(tokens, close, pair):
    inside = range(pair[close] + 1, close)
    return bool(inside) and is_type(tokens, pair[close] + 1) and all(
        is_type(tokens, k) or tokens[k].text == "*" for k in inside)


def is_binary(tokens, i, pair):
    b = tokens[i - 1]
    if b.kind == "number" or b.text == "]":
        return True
    if b.text == ")":
        return not is_cast(tokens, i - 1, pair) and (
            tokens[pair[i - 1] - 1].text not in CONTROL)
    return b.kind == "name" and b.text not in WORDS and not is_type(tokens, i - 1)


def changed_number(text):
    m = re.match(r"(0[xX][0-9a-fA-F]+|[0-9.]+(?:[eE][-+]?\d+)?)([uUlLfF]*)$", text)
    if not m:
        return None
    digits, suffix = m.groups()
    if re.search(r"[.eE]", digits) and not digits.lower().startswith("0x"):
        value = float(digits)
        return repr(value * 2 if value else 1.0) + suffix
    return str(int(digits, 0) + 1) + suffix


def families(tokens):
    """Names of constants that may stand for one another: LADDER_*, REASON_*, GUARD_*."""
    out = {}
    for t in tokens:
        m = re.match(r"[A-Z]+_(?=[A-Z])", t.text) if t.kind == "name" else None
        if m and t.area in ("code", "table"):
            out.setdefault(m.group(), [])
            if t.text not in out[m.group()]:
                out[m.group()].append(t.text)
    return out


def other_names(name, family, area):
    if name in NAMES:
        return [NAMES[name]]
    if name in COMBINERS:
        return sorted((COMBINERS & family["combiners"]) - {name})
    m = re.match(r"[A-Z]+_(?=[A-Z])", name)
    if m and len(family.get(m.group(), [])) > 1 and name.upper() == name:
        f = family[m.group()]
        return [f[(f.index(name) + 1) % len(f)]] if name in f else []
    return []


def is_bit_set(tokens, i, pair):
    """A term of a set of bits in a table or a #define: NAME or C(NAME); its last token or -1."""
    t = tokens[i]
    if t.kind != "name" or t.text.upper() != t.text or t.text in COMBINERS:
        return -1
    if tokens[i - 1].text == "(" and tokens[i - 2].kind == "name":
        return -1 # NAME of C(NAME)
    last = i
    if i + 1 < len(tokens) and tokens[i + 1].text == "(":
        last = pair[i + 1]
        return last if last == i + 3 else -1
    around = {tokens[i - 1].text, tokens[i + 1].text if i + 1 < len(tokens) else ""}
    single = not re.match(r"[A-Z]+_[A-Z]", t.text)
    return last if "|" in around or (t.area == "table" and single) else -1


def statements(tokens, pair):
    """(first, last) of each statement that ends with ; in a function, and the function's type."""
    kind, starts, header = None, False, -1
    for i, t in enumerate(tokens):
        if t.text == "{" and t.block and kind_is_body(tokens, i, pair):
            kind = return_type(tokens, pair[i - 1])
        if t.text == "for":
            header = pair[i + 1]
        if t.area != "code" or i < header:
            starts = False
            continue
        if starts and t.text not in ("{", "}"):
            last = statement_end(tokens, i, pair)
            if last is not None:
                yield i, last, kind
        b = t.text
        starts = (b in "{}" and t.block) or b in (";", "else", "do") or (
            b == ")" and tokens[pair[i] - 1].text in CONTROL) or (
            b == ":" and ends_label(tokens, i))


def kind_is_body(tokens, i, pair):
    return tokens[i - 1].text == ")" and tokens[pair[i - 1] - 1].text not in CONTROL


def return_type(tokens, open_paren):
    words, i = [], open_paren - 2
    while i >= 0 and tokens[i].text not in (";", "}", "{") and tokens[i].area == "":
        words.insert(0, tokens[i].text)
        i -= 1
    return " ".join(w for w in words if w not in ("static", "inline", "const"))


def ends_label(tokens, i):
    while tokens[i].text not in ("case", "default", ";", "{", "}", "?"):
        i -= 1
    return tokens[i].text in ("case", "default")


def statement_end(tokens, i, pair):
    if tokens[i].text in CONTROL | {"else", "do", "case", "default", ";"} or is_type(tokens, i):
        return None
    while tokens[i].text != ";":
        if tokens[i].text in ("(", "[", "{"):
            i = pair[i]
        i += 1
        if i >= len(tokens):
            return None
    return i


def mutants(file, source):
    tokens = tokenize(source)
    pair = lay_out(tokens)
    found = []

    def add(first, last, new, what=None):
        old = source[tokens[first].start:tokens[last].end]
        found.append((tokens[first].start, tokens[last].end, new,
                      what or f"{old} -> {new or 'nothing'}"))

    family = families(tokens)
    family["combiners"] = {t.text for t in tokens if t.text in COMBINERS}
    for i, t in enumerate(tokens):
        if t.area:
            token_mutants(tokens, i, pair, family, add)
    for row in macro_rows(tokens, pair):
        macro_row_mutants(tokens, row, pair, add)
    for first, last, kind in statements(tokens, pair):
        statement_mutants(tokens, first, last, kind, add)
    return finished(file, source, found)


def token_mutants(tokens, i, pair, family, add):
    t = tokens[i]
    if t.kind == "number":
        new = changed_number(t.text)
        if new:
            add(i, i, new)
    elif t.kind == "name":
        for new in other_names(t.text, family, t.area):
            add(i, i, new)
        last = is_bit_set(tokens, i, pair) if t.area != "code" else -1
        if last >= 0:
            add(i, last, "0u")
        if t.area == "code" and t.text in ("if", "while") and tokens[i + 1].text == "(":
            plain_condition(tokens, i + 1, pair[i + 1], add)
    elif t.kind == "op" and t.text in ("!", "~"):
        add(i, i, "")
    elif t.text in SWAPS and (t.text not in BINARY or is_binary(tokens, i, pair)):
        if t.text == "|" and t.area != "code":
            return # dropped bits say it better
        for new in SWAPS[t.text]:
            add(i, i, new)
    elif t.text == "-":
        add(i, i, "")
    elif t.text == "?" and t.area == "code":
        plain_condition(tokens, condition_start(tokens, i, pair) - 1, i, add)
    elif t.text == "." and t.area == "code" and tokens[i - 1].text in ("{", ","):
        drop_initialiser(tokens, i, pair, add)
    elif t.text == "{" and t.area == "table" and tokens[i - 1].text in ("{", ","):
        after = pair[i] + (tokens[pair[i] + 1].text == ",")
        add(i, after, "", "delete row")


def condition_start(tokens, i, pair):
    """Where x begins in x ? y : z."""
    while tokens[i - 1].text not in ("=", "return", "(", ",", ";", "?", ":", "{", "[", "+="):
        i = pair[i - 1] if tokens[i - 1].text in (")", "]") else i - 1
    return i


def drop_initialiser(tokens, first, pair, add):
    i = first
    while tokens[i + 1].text not in (",", "}"):
        i = pair[i + 1] if tokens[i + 1].text in ("(", "[", "{") else i + 1
    add(first, i + (tokens[i + 1].text == ","), "", f".{tokens[first + 1].text} -> dropped")


def macro_rows(tokens, pair):
    """(index of NAME, columns by position) of each row NAME(A, B, …) of a table."""
    rows = []
    for i, t in enumerate(tokens):
        if t.area != "table" or t.kind != "name" or tokens[i - 1].text not in ("{", ","):
            continue
        if tokens[i + 1].text == "(" and pair[i + 1] > i + 4:
            rows.append(i)
    columns = {} # (macro, position) -> what stands there, in order
    for i in rows:
        for k in range(i + 2, pair[i + 1], 2):
            c = columns.setdefault((tokens[i].text, k - i), [])
            if tokens[k].text not in c:
                c.append(tokens[k].text)
    return [(i, columns) for i in rows]


def macro_row_mutants(tokens, row, pair, add):
    i, columns = row
    last = pair[i + 1]
    add(i, last + (tokens[last + 1].text == ","), "", "delete row")
    for k in range(i + 2, last, 2):
        c = columns[tokens[i].text, k - i]
        if len(c) > 1:
            add(k, k, c[(c.index(tokens[k].text) + 1) % len(c)])


def plain_condition(tokens, open_, close, add):
    """if (x) or x ? y : z: nothing in it that another change would turn round."""
    inside = [t.text for t in tokens[open_ + 1:close]]
    if not any(w in SWAPS and w not in BINARY or w == "!" for w in inside):
        add(open_ + 1, close - 1, "!(" + " ".join(inside) + ")", "condition -> its opposite")


def statement_mutants(tokens, first, last, kind, add):
    inside = tokens[first:last]
    if inside[0].text == "return":
        plain = [t.text for t in inside[1:]]
        if len(plain) == 0:
            add(first, last, ";", "delete statement")
        elif plain not in (["0"], ["true"], ["false"]) and kind and kind != "void":
            add(first, last, f"return ({kind}){{0}};", "return -> return 0")
        return
    if [t.text for t in inside[:3]] == ["(", "void", ")"]:
        return
    add(first, last, ";", "delete statement")


def finished(file, source, found):
    lines = source.split("\n")
    seen, counts, out = set(), {}, []
    for start, end, new, what in found:
        if (start, end, new) in seen:
            continue
        seen.add((start, end, new))
        line = source.count("\n", 0, start) + 1
        n = counts[(line, what)] = counts.get((line, what), 0) + 1
        what = " ".join(what.split()) + (f" #{n}" if n > 1 else "")
        out.append(Mutant(file, start, end, new, line, lines[line - 1].strip(), what))
    return out
