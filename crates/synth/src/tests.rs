//! Declarations, their documentation, and what happens with values that do not fit them.

use super::*;

#[test]
fn mistakes_are_explained() {
    let error = |name: &str, given: &[(&str, &str)]| build(name, given, 1).unwrap_err().to_string();
    let has = |text: String, parts: &[&str]| {
        for part in parts {
            assert!(text.contains(part), "{text:?} lacks {part:?}");
        }
        assert!(!text.contains('\n'), "one paragraph: {text}");
    };
    has(error("rise", &[]), &["\"rise\"", "did you mean \"rice\"?", "worldcup"]);
    has(error("", &[]), &["no synthetic workload"]);
    has(error("rice", &[("request", "5")]), &["\"request\"", "did you mean \"requests\"?"]);
    has(error("rice", &[("hot_share", "0.5")]), &["no parameter \"hot_share\""]);
    has(error("rice", &[("targets", "many")]), &["targets = \"many\"", "a whole number from 2"]);
    has(error("rice", &[("targets", "10.5")]), &["a whole number from 2"]);
    has(error("rice", &[("shift", "NaN")]), &["a number from 0"]);
    has(error("rice", &[("window_min", "0")]), &["0.001 to 1"]);
    has(error("rice", &[("generator", "window")]), &["did you mean \"windowed\"?", "one of windowed"]);
    has(error("rice", &[("requests", "100")]), &["every target is requested at least once"]);
    has(error("rice", &[("window_min", "0.9")]), &["window_min is greater"]);
    has(error("rice", &[("cover97_mib", "800")]), &["must rise"]);
    has(error("rice", &[("size_max_mib", "0.01")]), &["half of size_max_mib"]);
    has(error("rice", &[("rate", "1e-9")]), &["300 years"]);
    for (sd, mean) in [("service_sd_ms", "service_mean_ms"), ("arrival_sd_ms", "arrival_mean_ms")] {
        has(error("fine_grain", &[(sd, "1e-300")]), &[sd, "less than a thousandth", mean, "0 stands for"]);
        has(error("poisson_exp", &[(sd, "50000")]), &[sd, "more than a hundred times", mean]);
        assert!(build("fine_grain", &[(sd, "0"), ("requests", "2000")], 1).is_ok());
    }
    has(error("worldcup", &[("file_median_bytes", "30000")]), &["workload worldcup:"]);
}

#[test]
fn declarations_are_complete_and_consistent() {
    for spec in SPECS {
        let generator = spec.parameter("generator").unwrap();
        let names: Vec<&str> = spec.generators.iter().map(|generator| generator.name).collect();
        assert!(matches!(generator.kind, ParameterKind::Choice(words) if words == names));
        let defaults: Vec<(&str, String)> = spec
            .parameters
            .iter()
            .map(|parameter| (parameter.name, parameter.written(parameter.default)))
            .collect();
        for parameter in spec.parameters {
            assert!(!parameter.help.is_empty() && !parameter.accepted().is_empty());
            let same = spec.parameters.iter().filter(|p| p.name == parameter.name).count();
            assert_eq!(same, 1, "{} is declared twice", parameter.name);
        }
        // Every default is accepted as the user would write it, and changes nothing.
        let given: Vec<(&str, &str)> = defaults.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let (explicit, implicit) = (build(spec.name, &given, 1).unwrap(), build(spec.name, &[], 1).unwrap());
        assert_eq!(explicit.parameters(), implicit.parameters());
        for generator in spec.generators {
            for (key, value) in generator.values {
                let parameter = spec.parameter(key).expect("a generator sets known parameters");
                assert!((parameter.min..=parameter.max).contains(value), "{key}");
            }
        }
    }
}

#[test]
fn extremes_of_the_ranges_do_not_panic() {
    for spec in SPECS {
        for parameter in spec.parameters {
            if matches!(parameter.name, "targets" | "requests" | "hot_targets") {
                continue;
            }
            for value in [parameter.min, parameter.max] {
                let text = parameter.written(value);
                let small = [("requests", "50000"), (parameter.name, text.as_str())];
                match build(spec.name, &small, 1) {
                    Ok(workload) => {
                        let records = workload.records().count() as u64;
                        assert_eq!(records, workload.len(), "{} {}", spec.name, parameter.name);
                    }
                    Err(error) => assert!(error.to_string().contains(spec.name), "{error}"),
                }
            }
        }
    }
    let tiny = [("targets", "2"), ("requests", "2"), ("total_mib", "0.1")];
    let covers = [("cover97_mib", "0"), ("cover98_mib", "0"), ("cover99_mib", "0")];
    let workload = build("rice", &[&tiny[..], &covers[..]].concat(), 1).unwrap();
    assert_eq!(workload.records().count(), 2);
    assert!(build("worldcup", &[("targets", "2"), ("requests", "9")], 1).is_err());
}

#[test]
fn documentation_lists_every_parameter_as_declared() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/workloads.md");
    let text = std::fs::read_to_string(path).expect("the documentation is part of the repository");
    for parameter in SPECS.iter().flat_map(|spec| spec.parameters) {
        let defaults: Vec<String> = SPECS
            .iter()
            .map(|spec| {
                let own = spec.parameter(parameter.name);
                own.map_or_else(|| "–".to_owned(), |own| own.written(own.default))
            })
            .collect();
        let range = match parameter.kind {
            ParameterKind::Choice(_) => "see above".to_owned(),
            _ => format!("{} – {}", parameter.min, parameter.max),
        };
        let row = format!(
            "| `{}` | {} | {} | {range} | {} |",
            parameter.name,
            parameter.unit,
            parameter.help,
            defaults.join(" | ")
        );
        assert!(text.contains(&row), "docs/workloads.md lacks this row:\n{row}");
    }
    for spec in SPECS {
        assert!(text.contains(&format!("`{}`", spec.name)));
        for generator in spec.generators {
            assert!(text.contains(&format!("`{}`", generator.name)), "{}", generator.name);
        }
    }
}
