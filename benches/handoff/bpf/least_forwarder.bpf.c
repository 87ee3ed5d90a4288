/*
 * The least that distributes connections at layer 4: no table, no service, no count. Packets to one port of the virtual address go
 * to one of two back-ends by the client's port; two MAC addresses are written. For comparison alone.
 *
 * Given by the compiler's options: VIRTUAL_ADDRESS and PORT (numbers), OWN_MAC, FIRST_MAC and SECOND_MAC (six bytes in braces).
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h>
#include <linux/tcp.h>

/* What libbpf's headers say, which need not be installed. */
#define SEC(name) __attribute__((section(name), used))
static long (*bpf_redirect)(__u32 ifindex, __u64 flags) = (void *)BPF_FUNC_redirect;
static long (*bpf_skb_pull_data)(struct __sk_buff *skb, __u32 len) = (void *)BPF_FUNC_skb_pull_data;

SEC("classifier")
int least_forwarder(struct __sk_buff *skb)
{
	static const __u8 own_mac[6] = OWN_MAC, first_mac[6] = FIRST_MAC, second_mac[6] = SECOND_MAC;

	bpf_skb_pull_data(skb, sizeof(struct ethhdr) + sizeof(struct iphdr) + sizeof(struct tcphdr));
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct ethhdr *eth = data;
	struct iphdr *ip = (void *)(eth + 1);
	struct tcphdr *tcp = (void *)(ip + 1);

	if ((void *)(tcp + 1) > end || eth->h_proto != __builtin_bswap16(ETH_P_IP) || ip->ihl != 5)
		return TC_ACT_OK;
	if (ip->protocol != IPPROTO_TCP || ip->daddr != __builtin_bswap32(VIRTUAL_ADDRESS) || tcp->dest != __builtin_bswap16(PORT))
		return TC_ACT_OK;
	/* A client counts its ports up by two. */
	if (__builtin_bswap16(tcp->source) & 2)
		__builtin_memcpy(eth->h_dest, first_mac, 6);
	else
		__builtin_memcpy(eth->h_dest, second_mac, 6);
	__builtin_memcpy(eth->h_source, own_mac, 6);
	return bpf_redirect(skb->ifindex, 0);
}

char LICENSE[] SEC("license") = "GPL";
