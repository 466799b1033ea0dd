package stack

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
)

// The ports that components listen on. The highest is at most the last below the range from which
// the system takes the ports of outgoing connections, so that a component which is restarted finds
// its port free.
const (
	lowestPort  = 10240
	highestPort = 32767
)

// given holds the ports that this process has given away. A component that is stopped for a while,
// or that starts slowly, listens on none of its ports, and still they are its own.
var given = struct { //nolint:gochecknoglobals // The machine's ports are global, and a process may have several hosts.
	sync.Mutex

	ports map[int]bool
}{ports: map[int]bool{}}

// freePorts returns ports that nobody listens on, on any address, and that it has not returned
// before.
func freePorts(n int) ([]int, error) {
	given.Lock()
	defer given.Unlock()
	highest := min(highestPort, lowestOutgoingPort()-1)
	var ports []int
	for tries := 0; len(ports) < n; tries++ {
		if highest < lowestPort || tries > 100*n {
			return nil, fmt.Errorf("cannot find %d free ports from %d to %d", n, lowestPort, highest)
		}
		port := lowestPort + rand.IntN(highest-lowestPort+1) //nolint:gosec // Nothing secret about a port.
		if given.ports[port] || !isFree(port) {
			continue
		}
		given.ports[port] = true
		ports = append(ports, port)
	}

	return ports, nil
}

// isFree says whether a component could listen on a port. Some can only listen on all addresses, so
// it has to be free there.
func isFree(port int) bool {
	l, err := net.Listen("tcp", fmt.Sprintf(":%d", port)) //nolint:noctx // Closed at once; and it does not block.
	if err != nil {
		return false
	}

	return l.Close() == nil
}

// lowestOutgoingPort returns the lowest port from which Linux connects. Other systems start above
// highestPort.
func lowestOutgoingPort() int {
	b, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return highestPort + 1
	}
	var lowest int
	if _, err := fmt.Sscan(string(b), &lowest); err != nil {
		return highestPort + 1
	}

	return lowest
}

// loopback returns the address of a port on this machine.
func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
