// What gRPC's least-request balancer costs per call: CPU time of the calling process above that of calls whose connection is known.
//
//	grpc CALLS
//
// Starts itself as a second process that serves 16 addresses. Calls are health checks, 64 at a time. A direct call takes the next of
// 16 connections in turn; the balanced ones take theirs by `least_request_experimental` of two, and by `round_robin`. Prints a
// JSON line for each form, as the other programs of part (client) do.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	_ "google.golang.org/grpc/balancer/leastrequest"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	pb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
)

const (
	servers = 16
	atOnce  = 64
	serve   = "serve"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "grpc:", err)
		os.Exit(1)
	}
}

// Serves until its standard input ends. Prints an address a line.
func serveAll() {
	for range servers {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		check(err)
		server := grpc.NewServer()
		pb.RegisterHealthServer(server, health.NewServer())
		go server.Serve(listener)
		fmt.Println(listener.Addr())
	}
	bufio.NewReader(os.Stdin).ReadString('\n')
}

func cpu() time.Duration {
	var usage syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func connect(target, policy string, options ...grpc.DialOption) pb.HealthClient {
	config := fmt.Sprintf(`{"loadBalancingConfig":[{%q:{}}]}`, policy)
	options = append(options, grpc.WithDefaultServiceConfig(config), grpc.WithTransportCredentials(insecure.NewCredentials()))
	connection, err := grpc.NewClient(target, options...)
	check(err)
	connection.Connect()
	return pb.NewHealthClient(connection)
}

// CPU time per call in microseconds, and how many failed.
func measure(calls int, client func(int) pb.HealthClient) (float64, int64) {
	var failed, next atomic.Int64
	run := func(most int) {
		var all sync.WaitGroup
		next.Store(0)
		for range atOnce {
			all.Go(func() {
				for {
					number := next.Add(1) - 1
					if number >= int64(most) {
						return
					}
					ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
					if _, err := client(int(number)).Check(ctx, &pb.HealthCheckRequest{}); err != nil {
						failed.Add(1)
					}
					cancel()
				}
			})
		}
		all.Wait()
	}
	// Until all connections are there.
	run(calls / 10)
	before := cpu()
	run(calls)
	return float64((cpu() - before).Nanoseconds()) / 1000 / float64(calls), failed.Load()
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == serve {
		serveAll()
		return
	}
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: grpc CALLS")
		os.Exit(2)
	}
	calls, err := strconv.Atoi(os.Args[1])
	check(err)
	child := exec.Command(os.Args[0], serve)
	child.Stderr = os.Stderr
	input, err := child.StdinPipe()
	check(err)
	output, err := child.StdoutPipe()
	check(err)
	check(child.Start())
	lines := bufio.NewScanner(output)
	var addresses []resolver.Address
	for len(addresses) < servers && lines.Scan() {
		addresses = append(addresses, resolver.Address{Addr: strings.TrimSpace(lines.Text())})
	}
	var direct []pb.HealthClient
	for _, address := range addresses {
		direct = append(direct, connect("passthrough:///"+address.Addr, "pick_first"))
	}
	directUs, failed := measure(calls, func(number int) pb.HealthClient { return direct[number%servers] })
	tell := func(form string, us float64, failed int64) {
		line, err := json.Marshal(map[string]any{"form": form, "us": us, "above_direct_us": us - directUs, "failed": failed})
		check(err)
		fmt.Println(string(line))
	}
	tell("gRPC (Go), direct", directUs, failed)
	for _, policy := range []string{"round_robin", "least_request_experimental"} {
		known := manual.NewBuilderWithScheme("known")
		known.InitialState(resolver.State{Addresses: addresses})
		balanced := connect("known:///all", policy, grpc.WithResolvers(known))
		us, failed := measure(calls, func(int) pb.HealthClient { return balanced })
		tell("gRPC (Go), "+policy, us, failed)
	}
	input.Close()
	child.Wait()
}
