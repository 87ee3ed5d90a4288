//! Claims as a study would hand them over.

use plimsoll_report::{Claim, Measured, Verdict};

/// One claim of each verdict.
pub(crate) fn claims() -> Vec<Claim> {
    let measured = |values: &[f64]| {
        values
            .iter()
            .enumerate()
            .map(|(index, &value)| Measured {
                workload: format!("rice-{index}"),
                seed: index as u64 + 1,
                condition: String::new(),
                value,
            })
            .collect()
    };
    vec![
        Claim {
            id: "7a".to_owned(),
            figure: "Figure 7".to_owned(),
            statement: "LARD/R serves several times as many requests as WRR on 16 back-ends".to_owned(),
            paper: Some(3.9),
            paper_text: String::new(),
            unit: "×".to_owned(),
            measured: measured(&[3.7, 4.1, 3.9, 4.4, 3.6]),
            verdict: Verdict::Holds,
            rule: "the median is between 2 and 6".to_owned(),
            explanation: String::new(),
        },
        Claim {
            id: "7b".to_owned(),
            figure: "Figure 7".to_owned(),
            statement: "LB is only modestly above WRR".to_owned(),
            paper: None,
            paper_text: "up to 60 % above".to_owned(),
            unit: "%".to_owned(),
            measured: measured(&[72.0, 140.0]),
            verdict: Verdict::Partly,
            rule: "LB is above WRR by at most 60 %".to_owned(),
            explanation:
                "LB is above WRR, but by more: rendezvous hashing spreads targets more evenly than the \
                          paper's hash function did."
                    .to_owned(),
        },
        Claim {
            id: "10".to_owned(),
            figure: "Section 4.1".to_owned(),
            statement: "WRR with ten times the cache matches LARD".to_owned(),
            paper: Some(1.0),
            paper_text: String::new(),
            unit: String::new(),
            measured: measured(&[0.61]),
            verdict: Verdict::Fails,
            rule: "throughput of WRR over that of LARD is at least 0.9".to_owned(),
            explanation:
                "Every back-end must read every file once under WRR; these reads weigh more in a short trace."
                    .to_owned(),
        },
    ]
}
