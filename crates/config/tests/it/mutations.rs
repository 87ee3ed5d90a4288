//! Whatever stands in the file: a configuration or errors, never a panic.

use plimsoll_config::Config;
use proptest::prelude::*;

use crate::EXAMPLE;

/// One change of a text.
#[derive(Debug, Clone)]
enum Edit {
    Delete(usize, usize),
    Insert(usize, String),
    RepeatLine(usize, usize),
    DropLine(usize),
    Value(usize, String),
}

fn edit() -> impl Strategy<Value = Edit> {
    let at = 0..EXAMPLE.len();
    let lines = 0..EXAMPLE.lines().count();
    let token = prop_oneof![
        Just("[".to_owned()),
        Just("]]\n".to_owned()),
        Just("\"".to_owned()),
        Just("=".to_owned()),
        Just("\n[[backend]]\n".to_owned()),
        Just("{}".to_owned()),
        Just("é\u{202e}\0".to_owned()),
        Just("'''".to_owned()),
        "[ -~]{0,6}",
        any::<char>().prop_map(String::from),
    ];
    let value = prop_oneof![
        Just("-1".to_owned()),
        Just("1e400".to_owned()),
        Just("nan".to_owned()),
        Just("0xffffffffffffffff".to_owned()),
        Just("[]".to_owned()),
        Just("[{}]".to_owned()),
        Just("{ a = 1 }".to_owned()),
        Just("true".to_owned()),
        Just("1979-05-27".to_owned()),
        Just("99999999999999999999999999".to_owned()),
        Just("\"\"".to_owned()),
        Just("\"::1\"".to_owned()),
        Just("\"[::]:0\"".to_owned()),
        Just("\"999999999h\"".to_owned()),
        Just("\"9e99TiB\"".to_owned()),
        Just("\"-\"".to_owned()),
        Just("\"\\u0000\"".to_owned()),
        any::<i64>().prop_map(|n| n.to_string()),
        any::<f64>().prop_map(|x| format!("{x:e}")),
        "[a-z0-9.:/-]{0,12}".prop_map(|s| format!("\"{s}\"")),
    ];
    prop_oneof![
        (at.clone(), 0..40usize).prop_map(|(at, n)| Edit::Delete(at, n)),
        (at, token).prop_map(|(at, text)| Edit::Insert(at, text)),
        (lines.clone(), lines.clone()).prop_map(|(from, to)| Edit::RepeatLine(from, to)),
        lines.clone().prop_map(Edit::DropLine),
        (lines, value).prop_map(|(at, text)| Edit::Value(at, text)),
    ]
}

fn apply(text: &str, edit: &Edit) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let boundary = |at: usize| text.floor_char_boundary(at.min(text.len()));
    match edit {
        Edit::Delete(at, n) => return text[..boundary(*at)].to_owned() + &text[boundary(at + n)..],
        Edit::Insert(at, part) => return text[..boundary(*at)].to_owned() + part + &text[boundary(*at)..],
        Edit::RepeatLine(from, to) if !lines.is_empty() => {
            let line = lines[from % lines.len()].clone();
            lines.insert(to % lines.len(), line);
        }
        Edit::DropLine(at) if !lines.is_empty() => drop(lines.remove(at % lines.len())),
        Edit::Value(at, value) if !lines.is_empty() => {
            let at = at % lines.len();
            if let Some((key, _)) = lines[at].split_once('=') {
                lines[at] = format!("{key}= {value}");
            }
        }
        _ => {}
    }
    lines.join("\n")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn mutations_of_the_example_never_panic(edits in prop::collection::vec(edit(), 1..6)) {
        let text = edits.iter().fold(EXAMPLE.to_owned(), |text, edit| apply(&text, edit));
        let example = Config::parse(EXAMPLE, "plimsoll.toml").unwrap();
        match Config::parse(&text, "plimsoll.toml") {
            Ok(config) => {
                let changes = Config::diff(&example, &config);
                prop_assert_eq!(changes.is_empty(), changes.to_string().is_empty());
                prop_assert!(Config::diff(&config, &config).is_empty());
                prop_assert!(config.policy.build(1, config.class_costs()).is_ok());
                prop_assert!(config.to_json().is_object());
            }
            Err(errors) => {
                prop_assert!(!errors.errors().is_empty());
                prop_assert_eq!(errors.to_string().lines().count(), errors.errors().len());
                for error in errors.errors() {
                    let place = error.place.unwrap();
                    prop_assert!(place.line >= 1 && place.line <= text.lines().count() + 1, "{}", error);
                    prop_assert!(!error.what.is_empty() && !error.remedy.is_empty());
                    prop_assert!(!error.to_string().contains(char::is_control));
                }
                prop_assert!(errors.render().lines().count() >= errors.errors().len());
            }
        }
    }

    #[test]
    fn arbitrary_text_never_panics(text in any::<String>()) {
        prop_assert!(Config::parse(&text, "plimsoll.toml").is_err());
    }
}
