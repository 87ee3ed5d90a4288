// Serves files in the ordinary way of Go: `files CONTENT LISTEN...`. LISTEN is the path of a Unix socket, or ADDRESS:PORT. A
// request's body is read, and its size told in the field X-Body.
package main

import (
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
)

func main() {
	files := http.FileServer(http.Dir(os.Args[1]))
	serve := func(response http.ResponseWriter, request *http.Request) {
		size, err := io.Copy(io.Discard, request.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		response.Header().Set("X-Body", strconv.FormatInt(size, 10))
		files.ServeHTTP(response, request)
	}
	ended := make(chan error)
	for _, place := range os.Args[2:] {
		network := "tcp"
		if strings.HasPrefix(place, "/") {
			network = "unix"
		}
		listener, err := net.Listen(network, place)
		if err != nil {
			log.Fatal(err)
		}
		go func() { ended <- http.Serve(listener, http.HandlerFunc(serve)) }()
	}
	log.Fatal(<-ended)
}
