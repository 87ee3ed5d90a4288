use super::*;
use crate::path_pattern::PathPattern;
use crate::pattern::ApplicationPattern;
use crate::uri::UriDecoded;
use proptest::prelude::*;

/// A pattern as `/path/** application=x name=value method=GET`.
fn pattern(class: u16, text: &str) -> ClassPattern {
    let mut words = text.split(' ');
    let mut out = ClassPattern::of_path(class, PathPattern::parse(words.next().unwrap()).unwrap());
    for word in words {
        let (name, value) = word.split_once('=').unwrap();
        match (name, value.strip_prefix("*.")) {
            ("application", Some(end)) => out.application = Some(ApplicationPattern::Ending(end.into())),
            ("application", None) => out.application = Some(ApplicationPattern::Named(value.into())),
            ("method", _) => out.method = Some(value.into()),
            _ => {
                let decoded = (value != "*").then(|| UriDecoded::in_query(value.as_bytes()).collect());
                out.parameters.insert(name.into(), decoded);
            }
        }
    }
    out
}

/// A table in which each pattern has a class of its own, from 1.
fn table(patterns: &[&str]) -> ClassTable {
    let class = |at: usize| ContentClass {
        name: format!("c{at}"),
        cpu_s: 1.0,
        disk_s: 0.0,
        size_bytes: 0.0,
        deviation_s: 0.0,
        requests: 0,
    };
    let classes = (0..patterns.len()).map(class).collect();
    let patterns = patterns.iter().enumerate().map(|(at, text)| pattern(at as u16 + 1, text)).collect();
    ClassTable::new(classes, Vec::new(), patterns).unwrap()
}

fn check(table: &ClassTable, cases: &[(&str, u16)]) {
    for (target, class) in cases {
        assert_eq!(table.class_of(b"GET", target.as_bytes()), *class, "{target}");
    }
}

/// Figure 3 of the paper: the same application with other parameters, and other applications of one path.
#[test]
fn the_example_of_the_paper() {
    let table = table(&[
        "/cgi-bin/sports/soccer cmd=list",
        "/cgi-bin/sports/soccer cmd=show id=*",
        "/cgi-bin/news/**",
    ]);
    check(
        &table,
        &[
            ("/cgi-bin/sports/soccer?cmd=list", 1),
            ("/cgi-bin/sports/soccer?id=7&cmd=show", 2),
            ("/cgi-bin/sports/soccer?cmd=show", 0),
            ("/cgi-bin/news/today", 3),
            ("/cgi-bin/news/weather?city=x", 3),
        ],
    );
}

#[test]
fn the_deepest_match_wins_then_application_then_parameters() {
    let table = table(&[
        "/**",
        "/a/**",
        "/a/b",
        "/a/*/c",
        "/a/** application=c",
        "/a/** p=1 q=2",
        "/a/** p=*",
        "/a/** p=1",
        "/a/** method=GET",
    ]);
    check(
        &table,
        &[
            ("/", 1),
            ("/x/y", 1),
            ("/a", 1),
            ("/a/b", 3),
            ("/a/b?p=1", 3),
            ("/a/b/c", 4),
            ("/a/c?p=1&q=2", 5),
            ("/a/x?p=1&q=2", 6),
            ("/a/x?q=2&p=1", 6),
            ("/a/x?p=1", 8),
            ("/a/x?p=2", 7),
            ("/a/x?p", 7),
            ("/a/x", 9),
            ("/a/", 9),
        ],
    );
    assert_eq!(table.class_of(b"POST", b"/a/x"), 2);
}

#[test]
fn a_path_that_matches_without_its_conditions_falls_back_to_a_wider_one() {
    let table = table(&["/a/**", "/a/b p=1", "/a/*/c q=1", "/a/b/**", "/a/b/c r=1"]);
    check(&table, &[("/a/b", 1), ("/a/b?p=1", 2), ("/a/b/c?q=1", 3), ("/a/b/c", 4), ("/a/b/c?q=1&r=1", 5)]);
}

#[test]
fn encoding_order_and_detours_do_not_matter() {
    let table = table(&["/caf%C3%A9/menu day=to%20day lang=*", "/img/** application=*.gif"]);
    check(
        &table,
        &[
            ("/caf%c3%a9/menu?day=to+day&lang=fr", 1),
            ("/caf\u{e9}/menu?day=to+day&lang=fr", 1),
            ("/%63af%C3%A9//./menu?lang=&%64ay=to%20da%79", 1),
            ("http://host/x/../caf%C3%A9/menu?lang&day=to+day#top", 1),
            ("/caf%C3%A9/menu?day=today&lang=fr", 0),
            ("/img/a/b.gif", 2),
            ("/img/a.b.%67if", 2),
            ("/img/gif", 0),
            ("/img/a.gif/b", 0),
        ],
    );
}

#[test]
fn an_operation_is_a_parameter() {
    let table = table(&["/graphql", "/graphql operationName=Report"]);
    assert_eq!(table.class_of(b"POST", b"/graphql?operationName=Report"), 2);
    assert_eq!(table.class_of_named(b"POST", b"/graphql", Some(b"Report")), 2);
    assert_eq!(table.class_of_named(b"POST", b"/graphql?operationName=Other", Some(b"Report")), 1);
    assert_eq!(table.class_of_named(b"POST", b"/graphql", None), 1);
}

#[test]
fn wrong_tables_are_refused() {
    let refuse = |classes: &ClassTable, patterns: Vec<ClassPattern>| {
        ClassTable::new(classes.classes().to_vec(), Vec::new(), patterns).unwrap_err().to_string()
    };
    let one = table(&["/a"]);
    assert!(refuse(&one, vec![pattern(2, "/a")]).contains("no class of this number"));
    assert!(refuse(&one, vec![pattern(0, "/a")]).contains("no class of this number"));
    assert!(
        refuse(&one, vec![pattern(1, "/a"), pattern(1, "/a")]).contains("patterns 0 and 1 match the same")
    );
    assert!(refuse(&one, vec![pattern(1, "/a application=x")]).contains("ends with `/**`"));
    let many: Vec<_> = (0..33).map(|at| pattern(1, &format!("/a a=* b{at}=1"))).collect();
    assert!(refuse(&one, many).contains("too many different sets"));
    let nine = "/a 1=* 2=* 3=* 4=* 5=* 6=* 7=* 8=* 9=*";
    assert!(refuse(&one, vec![pattern(1, nine)]).contains("at most 8"));
    let all = vec![pattern(1, "/a"); PATTERNS_MOST + 1];
    assert!(refuse(&one, all).contains("more than 65536 patterns"));
}

#[test]
fn huge_targets_are_classified_by_what_is_read_of_them() {
    let table = table(&["/a/** p=1", "/a/**"]);
    let many: String = (0..100_000).map(|at| format!("&x{at}={at}")).collect();
    check(&table, &[(&format!("/a/b?p=1{many}"), 1), (&format!("/a/b?{many}&p=1"), 2)]);
    let long = format!("/a{}", "/b".repeat(100_000));
    check(&table, &[(&long, 2), (&format!("{long}?p=1"), 1)]);
}

proptest! {
    #[test]
    fn any_bytes_get_a_class(target in proptest::collection::vec(any::<u8>(), 0..200), method in proptest::collection::vec(any::<u8>(), 0..9)) {
        let table = table(&["/a/*/b p=1", "/** q=*", "/a/** application=*.x"]);
        let class = table.class_of(&method, &target);
        prop_assert!(class <= 3);
        let mut path = b"/a/".to_vec();
        path.extend_from_slice(&target);
        prop_assert!(table.class_of(&method, &path) <= 3);
    }

    #[test]
    fn order_of_parameters_does_not_matter(mut pairs in proptest::collection::vec("[abp]{1,2}=[0-2%+]{0,3}", 0..8), seed in 0usize..8) {
        let table = table(&["/x", "/x p=1", "/x p=*", "/x a=1 b=2", "/x a=* p=2", "/x b=1", "/x pa=* pb=0"]);
        let target = |pairs: &[String]| format!("/x?{}", pairs.join("&"));
        let before = table.class_of(b"GET", target(&pairs).as_bytes());
        pairs.reverse();
        prop_assert_eq!(table.class_of(b"GET", target(&pairs).as_bytes()), before);
        let turn = seed.min(pairs.len());
        pairs.rotate_left(turn);
        prop_assert_eq!(table.class_of(b"GET", target(&pairs).as_bytes()), before);
    }

    #[test]
    fn tables_read_back_as_they_are_written(paths in proptest::collection::btree_set("(/[a-c*%.]{1,2}){1,3}(/\\*\\*)?", 1..8), name in "\\PC{1,20}", cpu_s in 0.0..86_400.0f64, value in "\\PC{0,9}") {
        let mut classes = table(&["/"]).classes().to_vec();
        classes[0].name = name;
        classes[0].cpu_s = cpu_s;
        let mut patterns: Vec<ClassPattern> = Vec::new();
        for path in paths.iter().filter_map(|text| PathPattern::parse(text).ok()) {
            let mut one = ClassPattern::of_path(1, path);
            one.parameters.insert(value.clone().into_bytes(), Some(value.clone().into_bytes()));
            one.application = one.path.below.then(|| ApplicationPattern::Named(b"a*.b/".to_vec()));
            if patterns.iter().all(|other| other.conditions() != one.conditions()) {
                patterns.push(one);
            }
        }
        let table = ClassTable::new(classes, Vec::new(), patterns).unwrap();
        let read = ClassTable::read(&table.write());
        prop_assert_eq!(read.map(|read| read.table), Ok(table));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,300}", lines in proptest::collection::vec("(\\[\\[(class|pattern)\\]\\]|(name|class|path|same_as|cpu_s|parameters) = (\"[a/*]{0,4}\"|[0-9e.-]{1,5}|\\{ a = \"[*1]\" \\}))", 0..30)) {
        let _ = ClassTable::read(&text);
        let _ = ClassTable::read(&lines.join("\n"));
    }
}
