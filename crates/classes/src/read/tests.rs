use super::*;

const FILE: &str = r#"
[[class]]
name = "search"
cpu_s = 0.012
disk_s = 0.001
size_bytes = 8120
deviation_s = 0.003
requests = 1200

[[class]]
name = "item"
cpu_s = 2e-3

[[class]]
name = "gallery"
same_as = "item"

[[pattern]]
class = "search"
path = "/shop/search"
parameters = { sort = "price", page = "*" }

[[pattern]]
class = "item"
path = "/shop/**"

[[pattern]]
class = "gallery"
path = "/img/**"
application = "*.cgi"
method = "GET"
"#;

fn table(text: &str) -> ClassTable {
    ClassTable::read(text).unwrap().table
}

fn errors(text: &str) -> String {
    ClassTable::read(text).unwrap_err().to_string()
}

#[test]
fn a_file_is_read_and_written_back() {
    let read = ClassTable::read(FILE).unwrap();
    assert_eq!(read.warnings, [""; 0]);
    let table = read.table;
    let search = &table.classes()[0];
    assert_eq!((search.name.as_str(), search.cpu_s, search.requests), ("search", 0.012, 1200));
    assert_eq!((search.disk_s, search.size_bytes, search.deviation_s), (0.001, 8120.0, 0.003));
    assert_eq!(table.classes()[1].cpu_s, 0.002);
    assert_eq!(table.classes().len(), 2);
    assert_eq!(self::table(&table.write()), table);
    assert_eq!(table.class_of(b"GET", b"/shop/search?page=2&sort=price"), 1);
    assert_eq!(table.class_of(b"GET", b"/shop/search?page=2"), 2);
    assert_eq!(table.class_of(b"GET", b"/img/a/b.cgi"), 2);
    assert_eq!(table.class_of(b"POST", b"/img/a/b.cgi"), 0);
    assert!(!table.is_empty());
    assert!(self::table("").is_empty());
    assert_eq!(self::table("").write(), "");
}

#[test]
fn all_errors_are_told_with_line_key_and_remedy() {
    let text = "[[class]]\nname = \"a\"\ncpu_s = -1\n\n[[class]]\nname = \"a\"\ncpu_s = 1\n\n[[class]]\nnme = \"b\"\ncpu_s = \"x\"\n\n\
                [[pattern]]\nclass = \"aa\"\npath = \"x\"\n\n[[pattern]]\nclass = \"a\"\npath = \"/x\"\nmethod = \"get\"\napplication = \"y\"\nparameters = { p = 1 }\n";
    assert_eq!(
        errors(text).lines().collect::<Vec<_>>(),
        [
            "line 3: class[0].cpu_s: -1 is out of range; write a number from 0 to 86400",
            "line 6: class[1].name: `a` is the name of the class in line 2, too; give each class a name of its own",
            "line 9: class[2].name: is missing; write `name = \"…\"` with a name that no other class has",
            "line 10: class[2].nme: there is no such key; did you mean `name`?",
            "line 11: class[2].cpu_s: is a text; write a number from 0 to 86400",
            "line 14: pattern[0].class: there is no class `aa`; did you mean `a`?",
            "line 15: pattern[0].path: does not begin with `/`; write a path as \"/shop/item\" or \"/shop/**\"",
            "line 20: pattern[1].method: `get` is no method; write it in capitals, as \"GET\"",
            "line 21: pattern[1].application: stands beside a path that does not end with `/**`; end the path with \"/**\", or write the application as its last segment",
            "line 22: pattern[1].parameters.p: is a whole number; write the value in double quotes",
        ]
    );
    assert!(errors("[[class]\n").starts_with("line 1: not valid TOML"));
    assert!(errors("class = 1\n").starts_with("line 1: class: is no list of tables"));
    assert!(errors("[[class]]\nname = \"a\"\ncpu_s = nan\n").contains("class[0].cpu_s: NaN is out of range"));
}

#[test]
fn circles_and_unknown_names_of_merged_classes_are_errors() {
    let alias =
        |name: &str, same_as: &str| format!("[[class]]\nname = \"{name}\"\nsame_as = \"{same_as}\"\n");
    let circle = [alias("a", "b"), alias("b", "c"), alias("c", "b"), alias("d", "d")].concat();
    let found = errors(&circle);
    assert_eq!(found.lines().count(), 4, "{found}");
    assert!(
        found
            .starts_with("line 3: class[0].same_as: leads from `a` to itself or into a circle; name a class"),
        "{found}"
    );
    let found = errors(&[alias("a", "b"), alias("b", "x")].concat());
    assert_eq!(found, "line 6: class[1].same_as: there is no class `x`; did you mean `a`?");
    let chain =
        [alias("a", "b"), alias("b", "x"), "[[class]]\nname = \"x\"\ncpu_s = 1\n".to_owned()].concat();
    assert_eq!(table(&chain).merged().len(), 2);
}

#[test]
fn equal_patterns_are_an_error_and_shadowed_ones_a_warning() {
    let class = "[[class]]\nname = \"a\"\ncpu_s = 1\n";
    let pattern = |path: &str| format!("[[pattern]]\nclass = \"a\"\npath = \"{path}\"\n");
    let twice = [class, &pattern("/x"), &pattern("/y"), &pattern("/%78")].concat();
    assert_eq!(
        errors(&twice),
        "line 10: pattern[2]: matches the same requests as the pattern in line 4; remove one of the two"
    );
    let shadow = [class, &pattern("/x/**"), &pattern("/x/*"), &pattern("/x/*/**")].concat();
    assert_eq!(
        ClassTable::read(&shadow).unwrap().warnings,
        [
            "line 4: pattern[0] is never used: the patterns in lines 7 and 10 are deeper and match the same requests"
        ]
    );
    assert_eq!(ClassTable::read(class).unwrap().warnings, ["line 1: no pattern leads to the class `a`"]);
}
