//! Explanations with figures of runs that were left out, because only one figure of a study was asked for.

/// In place of such a figure.
pub(crate) const FIGURE: &str = "an unknown number";

/// What is told in place of an explanation that has one.
pub(crate) fn told(explanation: String) -> String {
    if explanation.contains(FIGURE) {
        return "The reason is in figures of runs that this figure leaves out: the whole study tells it."
            .to_owned();
    }
    explanation
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_figure_is_told_that_there_is_not() {
        assert_eq!(told("LB has 0.61 times as much.".to_owned()), "LB has 0.61 times as much.");
        let left_out = told(format!("LB has {FIGURE} times as much."));
        assert!(!left_out.contains(FIGURE) && left_out.contains("the whole study"), "{left_out}");
    }
}
