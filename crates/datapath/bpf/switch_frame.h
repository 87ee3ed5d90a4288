/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Changes of frames that XDP and tc make in different ways: Ethernet headers with or without a VLAN tag. Pointers into the frame are
 * void after each of them.
 */
#pragma once

#include "switch_parse.h"

#define TAGGED_BYTES (sizeof(struct ethhdr) + VLAN_BYTES)

/* How a frame for a back-end begins. */
struct tagged_ethernet {
	__u8 destination[ETH_ALEN];
	__u8 source[ETH_ALEN];
	__be16 tag_protocol;
	__be16 tag;
	__be16 protocol;
} __attribute__((packed));

ALWAYS_INLINE void set_addresses(__u8 *destination, __u8 *source, const struct switch_backend *backend)
{
	__u64 to = backend->destination;
	__u64 from = backend->source;

	__builtin_memcpy(destination, &to, ETH_ALEN);
	__builtin_memcpy(source, &from, ETH_ALEN);
}

ALWAYS_INLINE bool sets_tag(__u32 vlan)
{
	return vlan & VLAN_SET && vlan & VLAN_ID_MASK;
}

ALWAYS_INLINE bool has_tag(CONTEXT *context, const struct sight *sight)
{
	return has_tag_beside(context) || sight->ip_offset != sizeof(struct ethhdr);
}

#ifdef SWITCH_XDP

/*
 * Out of this interface; back where it came from in a cheaper way. The driver of virtual cables (veth) would let that lie there unless the other
 * end has an XDP program, too.
 */
ALWAYS_INLINE int send_to(struct xdp_md *context, const struct sight *sight, __u32 ifindex)
{
	return ifindex == context->ingress_ifindex && !sight->is_virtual ? XDP_TX : bpf_redirect(ifindex, 0);
}

/* Makes the frame's beginning as long as it has to be with the tag that the back-end's frames have. */
ALWAYS_INLINE bool set_tag(struct xdp_md *context, const struct switch_backend *backend, const struct sight *sight)
{
	__u32 vlan = backend->vlan;
	struct vlan_tag *tag;
	struct ethhdr *ethernet;

	if (!(vlan & VLAN_SET))
		return true;
	if (!sets_tag(vlan))
		return !has_tag(context, sight) || !bpf_xdp_adjust_head(context, VLAN_BYTES);
	if (!has_tag(context, sight) && bpf_xdp_adjust_head(context, -VLAN_BYTES))
		return false;
	ethernet = (void *)(long)context->data;
	tag = (void *)(ethernet + 1);
	if ((void *)(tag + 1) > (void *)(long)context->data_end)
		return false;
	ethernet->h_proto = bpf_htons(ETH_P_8021Q);
	tag->id = bpf_htons(vlan & VLAN_ID_MASK);
	return true;
}

#else

ALWAYS_INLINE int send_to(struct __sk_buff *skb, const struct sight *sight, __u32 ifindex)
{
	(void)skb;
	(void)sight;
	return bpf_redirect(ifindex, 0);
}

ALWAYS_INLINE bool set_tag(struct __sk_buff *skb, const struct switch_backend *backend, const struct sight *sight)
{
	__u32 vlan = backend->vlan;

	if (!(vlan & VLAN_SET))
		return true;
	if (has_tag(skb, sight) && bpf_skb_vlan_pop(skb))
		return false;
	return !sets_tag(vlan) || !bpf_skb_vlan_push(skb, bpf_htons(ETH_P_8021Q), vlan & VLAN_ID_MASK);
}

#endif
