package loader_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/dsload/dsload/loader"
	"github.com/dsload/dsload/shard"
)

// A build from Go, and the first row of what it made.
func ExampleBuild() {
	dir, err := os.MkdirTemp("", "loader")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	text := filepath.Join(dir, "greetings.txt")
	if err := os.WriteFile(text, []byte("Hello world\nHello again, world\n"), 0o600); err != nil {
		log.Fatal(err)
	}
	sum, err := loader.Build(context.Background(), loader.BuildOptions{
		Sources: []string{text}, MaxLength: 128,
		Out: filepath.Join(dir, "data"), Memory: 128 << 20,
	})
	if err != nil {
		log.Fatal(err)
	}
	d, err := shard.Open(sum.Out)
	if err != nil {
		log.Fatal(err)
	}
	defer d.Close()
	train, err := d.Split("train")
	if err != nil {
		log.Fatal(err)
	}
	var row shard.Row
	if err := train.ReadRow(0, &row); err != nil {
		log.Fatal(err)
	}
	fmt.Println(train.NumRows(), row.AppendInputIDs(nil))
	// Output: 2 [15496 995]
}

// The batches of a dataset's folder. The path of a server's socket, or its address, gives the same ones.
func ExampleOpen() {
	l, err := loader.Open(context.Background(), "../testdata/datasets/words", "batch_size=3&shuffle=none")
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	for b, err := range l.Batches() {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(b.Rows, "rows of", b.Length, "tokens, the next step starts at", b.Next)
	}
	// Output:
	// 3 rows of 8 tokens, the next step starts at 3
	// 1 rows of 3 tokens, the next step starts at 4
}

// What kind of an error it is.
func ExampleError() {
	_, err := loader.Build(context.Background(), loader.BuildOptions{Sources: []string{"nothing.here"}})
	var e loader.Error
	fmt.Println(errors.As(err, &e) && e.Kind() == loader.Usage)
	// Output: true
}

// A server of a dataset, asked whether it is well.
func ExampleServe() {
	dir, err := os.MkdirTemp("", "loader")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "feed.sock")
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error)
	go func() {
		served <- loader.Serve(ctx, loader.ServeOptions{Datasets: []string{"../testdata/datasets/words"},
			Socket: socket})
	}()
	client := http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn,
		error) {
		return net.Dial("unix", socket)
	}}}
	for {
		answer, err := client.Get("http://dsload/healthz")
		if err == nil {
			fmt.Println(answer.Status)
			answer.Body.Close()
			break
		}
		time.Sleep(time.Millisecond) // the server is starting
	}
	client.CloseIdleConnections()
	stop()
	fmt.Println(<-served)
	// Output:
	// 200 OK
	// <nil>
}
