//! What tables and plots call a run.

use std::borrow::Cow;

use crate::run::Run;

/// Between the name of a policy and the kind of its load information.
const SEPARATOR: &str = ", ";

/// The runs with policies called `NAME, LOAD INFORMATION`, where there are several kinds of it.
pub(crate) fn labelled(runs: &[Run]) -> Cow<'_, [Run]> {
    let Some(first) = runs.first() else { return Cow::Borrowed(runs) };
    if runs.iter().all(|run| run.load_information == first.load_information) {
        return Cow::Borrowed(runs);
    }
    let label = |run: &Run| format!("{}{SEPARATOR}{}", run.policy, run.load_information);
    Cow::Owned(runs.iter().map(|run| Run { policy: label(run), ..run.clone() }).collect())
}

/// The name of the policy in what [`labelled`] calls a run.
pub(crate) fn policy_of(label: &str) -> &str {
    label.split_once(SEPARATOR).map_or(label, |(policy, _)| policy)
}
