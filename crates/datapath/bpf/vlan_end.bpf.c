// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
/*
 * A machine in a VLAN whose kernel knows none, for tc: at ingress the VLAN's tag is taken off, at egress it is put on what has none.
 * So the kernel sees an interface without tags.
 */

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define VLAN_ID_MASK 0xfff

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} vlan_number SEC(".maps");

struct vlan_counters {
	__u64 taken;   /* off frames of the VLAN */
	__u64 put;     /* on frames without one */
	__u64 others;  /* frames that arrived with another tag, or none: left as they are */
	__u64 failed;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct vlan_counters);
} vlan_counts SEC(".maps");

SEC("tc")
int plimsoll_vin(struct __sk_buff *skb)
{
	__u32 zero = 0;
	__u32 *number = bpf_map_lookup_elem(&vlan_number, &zero);
	struct vlan_counters *counts = bpf_map_lookup_elem(&vlan_counts, &zero);

	if (!number || !counts)
		return TC_ACT_UNSPEC;
	if (!skb->vlan_present || (skb->vlan_tci & VLAN_ID_MASK) != *number) {
		counts->others++;
		return TC_ACT_UNSPEC;
	}
	if (bpf_skb_vlan_pop(skb)) {
		counts->failed++;
		return TC_ACT_SHOT;
	}
	counts->taken++;
	return TC_ACT_UNSPEC;
}

SEC("tc")
int plimsoll_vout(struct __sk_buff *skb)
{
	__u32 zero = 0;
	__u32 *number = bpf_map_lookup_elem(&vlan_number, &zero);
	struct vlan_counters *counts = bpf_map_lookup_elem(&vlan_counts, &zero);

	if (!number || !counts || skb->vlan_present || skb->protocol == bpf_htons(ETH_P_8021Q) ||
	    skb->protocol == bpf_htons(ETH_P_8021AD))
		return TC_ACT_UNSPEC;
	if (bpf_skb_vlan_push(skb, bpf_htons(ETH_P_8021Q), *number)) {
		counts->failed++;
		return TC_ACT_SHOT;
	}
	counts->put++;
	return TC_ACT_UNSPEC;
}

char LICENSE[] SEC("license") = "GPL";
