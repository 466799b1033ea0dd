package stack

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Below the range from which systems take the ports of outgoing connections, so that a component which is restarted finds its port free.
const (
	lowestPort  = 10240
	highestPort = 32767
)

// freePorts returns ports on the loopback address that nobody listens on.
func freePorts(n int) ([]int, error) {
	var ports []int
	for tries := 0; len(ports) < n; tries++ {
		if tries > 100*n {
			return nil, fmt.Errorf("cannot find %d free ports from %d to %d", n, lowestPort, highestPort)
		}
		port := lowestPort + rand.IntN(highestPort-lowestPort+1) //nolint:gosec // Nothing secret about a port.
		// Some components can only listen on all addresses, so the port has to be free there.
		l, err := net.Listen("tcp", fmt.Sprintf(":%d", port)) //nolint:noctx // Closed at once; and it does not block.
		if err != nil {
			continue
		}
		defer l.Close() //nolint:errcheck,gocritic // Held until all are found, so that none is found twice.
		ports = append(ports, port)
	}

	return ports, nil
}

// loopback returns the address of a port on this machine.
func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
