//! Frames that the switch drops, as rules of `nft`.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::error::LabError;
use crate::node::Node;

/// The rules by which the switch drops frames.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    /// Pairs of nodes; frames of the first do not reach the second.
    pub(crate) blocked: BTreeSet<(Node, Node)>,
    /// `nft` expressions of frames to drop.
    pub(crate) matching: Vec<String>,
}

impl Rules {
    /// A script that puts exactly these rules in force, in one transaction.
    pub(crate) fn script(&self) -> String {
        let mut out = String::from(
            "add table bridge faults\ndelete table bridge faults\ntable bridge faults {\n chain forward {\n  type filter \
             hook forward priority 0; policy accept;\n",
        );
        // Writing to a string does not fail.
        for (from, to) in &self.blocked {
            let _ = writeln!(out, "  iifname \"{from}\" oifname \"{to}\" drop");
        }
        for matching in &self.matching {
            let _ = writeln!(out, "  {matching} drop");
        }
        out + " }\n}\n"
    }
}

/// Refuses text that is more than the condition of one rule.
pub(crate) fn check_matching(matching: &str) -> Result<(), LabError> {
    if !matching.trim().is_empty() && !matching.contains(['{', '}', ';', '\n', '#']) {
        return Ok(());
    }
    Err(LabError::Invalid(format!(
        "expected a condition of nft, such as `ip daddr 10.77.0.11 tcp dport 80`, not `{matching}`"
    )))
}

/// Counts what each node sends to each other one. Addresses of several receivers have a bit.
pub(crate) const COUNTING: &str = "\
add table bridge counts
delete table bridge counts
table bridge counts {
 set pairs { typeof meta iifname . meta oifname; size 65535; flags dynamic; counter; }
 chain forward {
  type filter hook forward priority -10; policy accept;
  ether daddr & 01:00:00:00:00:00 == 00:00:00:00:00:00 update @pairs { meta iifname . meta oifname }
 }
}
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_as_text() {
        let mut rules = Rules::default();
        assert!(!rules.script().contains("drop"));
        rules.blocked.insert((Node::FrontEnd, Node::Backend(1)));
        rules.matching.push("tcp dport 80".to_owned());
        let script = rules.script();
        assert!(script.contains("\n  iifname \"front-end\" oifname \"b1\" drop\n"), "{script}");
        assert!(script.contains("\n  tcp dport 80 drop\n"), "{script}");
        assert_eq!(script.matches("drop").count(), 2, "{script}");
    }

    #[test]
    fn conditions_of_one_rule() {
        assert!(check_matching("tcp flags & fin == fin").is_ok());
        for bad in ["", "  ", "accept; tcp dport 1", "ip saddr { 1.1.1.1 }", "x\ny"] {
            assert!(check_matching(bad).is_err(), "{bad}");
        }
    }
}
