// Receives callbacks and runs a tool, with net/http.
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

var key []byte

func isGenuine(headers http.Header, body []byte) bool {
	timestamp := headers.Get("webhook-timestamp")
	sent, err := strconv.ParseInt(timestamp, 10, 64)
	if now := time.Now().Unix(); err != nil || now-sent > 300 || sent-now > 300 {
		return false
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(headers.Get("webhook-id") + "." + timestamp + "."))
	mac.Write(body)
	expected := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for _, given := range strings.Split(headers.Get("webhook-signature"), " ") {
		if hmac.Equal([]byte(given), []byte(expected)) {
			return true
		}
	}
	return false
}

// verified gives a handler the parsed body, if its signature is genuine. The signature covers the bytes of the body.
func verified[Message any](handle func(http.ResponseWriter, Message)) http.HandlerFunc {
	return func(response http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(io.LimitReader(request.Body, 32<<20))
		if err != nil || !isGenuine(request.Header, body) {
			response.WriteHeader(http.StatusUnauthorized)
			return
		}
		var message Message
		if err := json.Unmarshal(body, &message); err != nil {
			response.WriteHeader(http.StatusBadRequest)
			return
		}
		handle(response, message)
	}
}

type event struct {
	Type string
	ID   string
	Data struct {
		Turn    struct{ Status string }
		Session struct{ Title string }
	}
}

type call struct {
	Name      string
	Arguments struct {
		OrderID string `json:"order_id"`
	}
}

func main() {
	secret, err := os.ReadFile("secret.txt")
	if err != nil {
		log.Fatal(err)
	}
	key, err = base64.StdEncoding.DecodeString(strings.TrimPrefix(strings.TrimSpace(string(secret)), "whsec_"))
	if err != nil {
		log.Fatal(err)
	}
	// The same event may come twice: store event.ID together with what you do.
	http.Handle("/events", verified(func(response http.ResponseWriter, event event) {
		fmt.Println(event.Type, event.Data.Turn.Status, event.Data.Session.Title)
		response.WriteHeader(http.StatusNoContent)
	}))
	// The model gets what the tool returns.
	http.Handle("/tools/lookup_order", verified(func(response http.ResponseWriter, call call) {
		fmt.Println(call.Name, call.Arguments.OrderID, "for the first time")
		json.NewEncoder(response).Encode(map[string]string{"order_id": call.Arguments.OrderID, "state": "shipped"})
	}))
	log.Fatal(http.ListenAndServe("127.0.0.1:3000", nil))
}
