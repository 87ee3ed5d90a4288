// Serves files in the ordinary way of Go: `files CONTENT ADDRESS:PORT`. A request's body is read, and its size told in the
// field X-Body.
package main

import (
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
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
	log.Fatal(http.ListenAndServe(os.Args[2], http.HandlerFunc(serve)))
}
