//! The policy's state, of all and of one target, in numbers and in words.

use http::StatusCode;
use plimsoll_observe::reply::Refused;
use plimsoll_policy::Health;
use plimsoll_policy::params::ParamValue;
use serde_json::{Value, json};

use super::super::mapping::{MappingLook, NodeLook, TargetLook};
use super::super::shared::CloneShared;

fn shown(node: &NodeLook) -> Value {
    json!({
        "name": node.name,
        "here": node.here,
        "takes_requests": node.health == Health::Up,
        "load": node.own_load,
        "shown_load": node.load,
    })
}

/// Every node.
pub(super) fn nodes(shared: &CloneShared) -> Value {
    let look = shared.mapping.look();
    json!({ "nodes": look.nodes.iter().map(shown).collect::<Vec<_>>() })
}

/// The policy, and what it does in numbers.
pub(super) fn policy(shared: &CloneShared) -> Value {
    let look = shared.mapping.look();
    let params: serde_json::Map<_, _> = shared
        .config
        .policy
        .params
        .iter()
        .map(|(name, value): (&str, ParamValue)| (name.to_owned(), json!(value)))
        .collect();
    let stats: serde_json::Map<_, _> =
        look.stats.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    json!({
        "name": look.policy,
        "summary": shared.config.policy.spec.summary,
        "parameters": params,
        "min_size_bytes": shared.config.min_bytes,
        "stats": stats,
        "tracked_targets": look.tracked_targets,
        "decisions": look.counts.assigned,
        "small": look.counts.small,
        "without_node": look.counts.rejected,
        "polls": look.counts.polls,
        "reports": look.counts.reports,
        "nodes_shared_with": shared.sharing.fresh(&shared.config),
    })
}

/// What else there is to see of the policy.
pub(super) fn tables(shared: &CloneShared) -> Value {
    let tables = shared.mapping.look().tables;
    let shown = tables
        .iter()
        .map(|table| json!({ "name": table.name, "columns": table.columns, "rows": table.rows }));
    json!({ "tables": shown.collect::<Vec<_>>() })
}

/// The state of the decision log.
pub(super) fn decisions(shared: &CloneShared) -> Value {
    let (dropped_chunks, errors, last_error) = shared.mapping.log_state().unwrap_or_default();
    json!({
        "enabled": shared.config.decision_log.is_some(),
        "directory": shared.config.decision_log.as_ref().map(|directory| directory.display().to_string()),
        "dropped_chunks": dropped_chunks,
        "errors": errors,
        "last_error": last_error,
    })
}

/// What is held about the target of this query, the rest of which is the target as it is.
pub(super) fn of_target(shared: &CloneShared, query: Option<&str>) -> Result<Value, Refused> {
    let given = query.and_then(|query| query.strip_prefix("target=")).filter(|given| !given.is_empty());
    let Some(given) = given else {
        return Err(Refused::new(
            StatusCode::BAD_REQUEST,
            "the query does not say which target",
            "ask GET /why?target=/path?query; the target is taken as it is, without decoding",
        ));
    };
    let (look, target) = (shared.mapping.look(), shared.mapping.look_at(given.as_bytes()));
    let backends: Vec<_> = look
        .nodes
        .iter()
        .map(|node| {
            let mut value = shown(node);
            value["in_server_set"] = json!(target.server_set.contains(&node.name));
            value
        })
        .collect();
    Ok(json!({
        "target": given,
        "target_id": format!("{:016x}", plimsoll_policy::TargetId::from_key(given.as_bytes()).0),
        "policy": look.policy,
        "keeps_assignments": look.assigned_targets > 0 || !target.server_set.is_empty(),
        "known_size_bytes": target.known_size_bytes,
        "min_size_bytes": shared.config.min_bytes,
        "server_set": target.server_set,
        "load": look.nodes.iter().map(|node| u64::from(node.own_load)).sum::<u64>(),
        "nodes": backends,
        "explanation": explain(&look, &target),
    }))
}

fn explain(look: &MappingLook, target: &TargetLook) -> String {
    let policy = look.policy;
    let mut out = if target.is_small {
        "Its document is known to be smaller than --clone-min-size: the node that accepted the client answers, and the policy is \
         not asked."
            .to_owned()
    } else if !target.server_set.is_empty() {
        format!(
            "`{policy}` has assigned this target to {}, and prefers that for the next request. Its rules may still move the \
             assignment or add to it, when loads are high or nodes cannot be asked.",
            target.server_set.join(", ")
        )
    } else if look.assigned_targets > 0 {
        format!(
            "`{policy}` keeps assignments of {} targets, but none of this one: the next request for it decides.",
            look.assigned_targets
        )
    } else if look.counts.assigned == 0 {
        format!("No request has been assigned yet, and `{policy}` holds nothing about this target.")
    } else {
        format!(
            "`{policy}` holds no assignment of targets. This is the state of the nodes, not a prediction of where a request \
             would go."
        )
    };
    let least = look.nodes.iter().filter(|node| node.health == Health::Up).min_by_key(|node| node.load);
    if let Some(least) = least {
        out.push_str(&format!(
            " Least loaded now, as far as this node knows: {} with {}.",
            least.name, least.load
        ));
    }
    let down: Vec<_> =
        look.nodes.iter().filter(|node| node.health != Health::Up).map(|node| &*node.name).collect();
    if !down.is_empty() {
        out.push_str(&format!(" Cannot be asked for clones: {}.", down.join(", ")));
    }
    out
}
