package stack

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
)

// The range of ports that components listen on. It is below the ports that the system takes for
// outgoing connections, so that a restarted component finds its port free.
const (
	lowestPort  = 10240
	highestPort = 32767
)

// reserved holds the ports that this process has handed out. A stopped or slowly starting component
// listens on none of its ports, and still owns them.
var reserved = struct { //nolint:gochecknoglobals // The machine's ports are global, and a process may have several hosts.
	sync.Mutex

	ports map[int]bool
}{ports: map[int]bool{}}

// freePorts returns ports that are free on every address and that it has not returned before.
func freePorts(n int) ([]int, error) {
	reserved.Lock()
	defer reserved.Unlock()
	highest := min(highestPort, lowestOutgoingPort()-1)
	var ports []int
	for tries := 0; len(ports) < n; tries++ {
		if highest < lowestPort || tries > 100*n {
			return nil, fmt.Errorf("cannot find %d free ports from %d to %d", n, lowestPort, highest)
		}
		port := lowestPort + rand.IntN(highest-lowestPort+1) //nolint:gosec // Nothing secret about a port.
		if reserved.ports[port] || !isFree(port) {
			continue
		}
		reserved.ports[port] = true
		ports = append(ports, port)
	}

	return ports, nil
}

// isFree reports whether a component could listen on a port. It must be free on all addresses,
// since some components can't choose one.
func isFree(port int) bool {
	l, err := net.Listen("tcp", fmt.Sprintf(":%d", port)) //nolint:noctx // Closed at once; and it does not block.
	if err != nil {
		return false
	}

	return l.Close() == nil
}

// lowestOutgoingPort returns the lowest port of Linux for outgoing connections. Other systems start
// above highestPort.
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
