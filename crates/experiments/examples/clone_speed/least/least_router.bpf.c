/*
 * The least packet router: packets of clients whose connections are at the clone's node go there; two MAC addresses are written.
 * For comparison alone.
 *
 * Given by the compiler's options: OWN_MAC and CLONE_MAC (six bytes in braces).
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h>
#include <linux/tcp.h>

/* What libbpf's headers say, which need not be installed. */
#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) typeof(value) *name
static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)BPF_FUNC_map_lookup_elem;
static long (*bpf_redirect)(__u32 ifindex, __u64 flags) = (void *)BPF_FUNC_redirect;
static long (*bpf_skb_pull_data)(struct __sk_buff *skb, __u32 len) = (void *)BPF_FUNC_skb_pull_data;

/* By the client's address and port. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__uint(pinning, 1);
	__type(key, __u64);
	__type(value, __u32);
} least_cloned SEC(".maps");

struct packet {
	struct ethhdr eth;
	struct iphdr ip;
	struct tcphdr tcp;
} __attribute__((packed));

/* The headers of a packet of TCP over IPv4 without options. */
static inline __attribute__((always_inline)) struct packet *tcp_packet(struct __sk_buff *skb)
{
	bpf_skb_pull_data(skb, sizeof(struct packet));
	struct packet *packet = (void *)(long)skb->data;

	if ((void *)(packet + 1) > (void *)(long)skb->data_end || packet->eth.h_proto != __builtin_bswap16(ETH_P_IP))
		return 0;
	return packet->ip.ihl == 5 && packet->ip.protocol == IPPROTO_TCP ? packet : 0;
}

SEC("classifier")
int least_router(struct __sk_buff *skb)
{
	static const __u8 own_mac[6] = OWN_MAC, clone_mac[6] = CLONE_MAC;

	struct packet *packet = tcp_packet(skb);

	if (!packet)
		return TC_ACT_OK;
	__u64 client = (__u64)packet->ip.saddr << 16 | packet->tcp.source;
	if (!bpf_map_lookup_elem(&least_cloned, &client))
		return TC_ACT_OK;
	__builtin_memcpy(packet->eth.h_dest, clone_mac, 6);
	__builtin_memcpy(packet->eth.h_source, own_mac, 6);
	return bpf_redirect(skb->ifindex, 0);
}

/* At the clone's node: a packet that comes after a clone has gone is nobody's there, and its client is not told so. */
SEC("silence")
int least_silence(struct __sk_buff *skb)
{
	struct packet *packet = tcp_packet(skb);

	if (!packet)
		return TC_ACT_OK;
	return packet->tcp.rst ? TC_ACT_SHOT : TC_ACT_OK;
}

char LICENSE[] SEC("license") = "GPL";
