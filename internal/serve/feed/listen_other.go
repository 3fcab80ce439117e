//go:build !unix

package feed

import (
	"errors"
	"net"
)

// ListenUnix is not supported on this system, where a file mode does not protect a socket. Use TCP
// on the loopback address.
func ListenUnix(path string) (net.Listener, error) {
	return nil, errors.New("unix sockets are not supported on this system; listen on 127.0.0.1:PORT")
}

// ListenTCP listens on HOST:PORT.
func ListenTCP(address string) (net.Listener, error) {
	return net.Listen("tcp", address)
}
