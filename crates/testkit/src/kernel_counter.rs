//! Counters that the kernel keeps for a network namespace.

/// A counter of `group` in the text of `/proc/net/snmp` or `/proc/net/netstat`, where the names stand in one line and the values
/// in the next, such as `RetransSegs` of `Tcp`. A thread that is in another namespace than its process reads these files in
/// `/proc/thread-self/net`.
///
/// # Panics
/// When there is none.
#[must_use]
pub fn kernel_counter(text: &str, group: &str, name: &str) -> u64 {
    let of_group = |line| str::strip_prefix(line, group)?.strip_prefix(": ");
    let mut lines = text.lines().filter_map(of_group).map(|line| line.split(' '));
    let found = lines.next().zip(lines.next()).and_then(|(names, values)| {
        let (_, value) = names.zip(values).find(|(found, _)| *found == name)?;
        value.parse().ok()
    });
    found.unwrap_or_else(|| panic!("no {name} of {group} in {text}"))
}

#[cfg(test)]
mod tests {
    use super::kernel_counter;

    #[test]
    fn counters_are_found_by_group_and_name() {
        let text = "Ip: A B\nIp: 1 2\nTcpExt: B A\nTcpExt: 3 4\nTcp: A B\nTcp: -1 6\n";
        assert_eq!(kernel_counter(text, "TcpExt", "A"), 4);
        assert_eq!(kernel_counter(text, "Tcp", "B"), 6);
    }

    #[test]
    #[should_panic(expected = "no C of Ip")]
    fn an_unknown_counter_is_no_zero() {
        let _ = kernel_counter("Ip: A B\nIp: 1 2\n", "Ip", "C");
    }
}
