/* The least that forwards packets of known TCP connections: one look-up, two MAC addresses. For comparison alone. */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/tcp.h>

/* What libbpf's headers say, which need not be installed. */
#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) typeof(value) *name
static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)BPF_FUNC_map_lookup_elem;
static long (*bpf_redirect)(__u32 ifindex, __u64 flags) = (void *)BPF_FUNC_redirect;

struct bare_key {
	__u32 client;
	__u32 address;
	__u16 client_port;
	__u16 port;
};

struct bare_hop {
	__u8 mac[6];
	__u8 own_mac[6];
	__u32 ifindex;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1200000);
	__type(key, struct bare_key);
	__type(value, struct bare_hop);
} bare_conns SEC(".maps");

SEC("xdp")
int bare_forwarder(struct xdp_md *xdp)
{
	void *data = (void *)(long)xdp->data, *end = (void *)(long)xdp->data_end;
	struct ethhdr *eth = data;
	struct iphdr *ip = (void *)(eth + 1);
	struct tcphdr *tcp = (void *)(ip + 1);

	if ((void *)(tcp + 1) > end || eth->h_proto != __builtin_bswap16(ETH_P_IP) || ip->ihl != 5 || ip->protocol != IPPROTO_TCP)
		return XDP_PASS;
	struct bare_key key = {
		.client = ip->saddr,
		.address = ip->daddr,
		.client_port = tcp->source,
		.port = tcp->dest,
	};
	struct bare_hop *hop = bpf_map_lookup_elem(&bare_conns, &key);
	if (!hop)
		return XDP_PASS;
	__builtin_memcpy(eth->h_dest, hop->mac, 6);
	__builtin_memcpy(eth->h_source, hop->own_mac, 6);
	return bpf_redirect(hop->ifindex, 0);
}

/* How many frames of IPv4 have come, on each CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} taken_in SEC(".maps");

/* Takes in what is forwarded, at the other end. */
SEC("xdp")
int take_in(struct xdp_md *xdp)
{
	__u32 zero = 0;
	__u64 *frames = bpf_map_lookup_elem(&taken_in, &zero);
	struct ethhdr *eth = (void *)(long)xdp->data;

	/* The kernel sends frames of its own, of IPv6. */
	if (frames && (void *)(eth + 1) <= (void *)(long)xdp->data_end && eth->h_proto == __builtin_bswap16(ETH_P_IP))
		++*frames;
	return XDP_DROP;
}

char LICENSE[] SEC("license") = "GPL";
