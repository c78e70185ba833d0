// go run verify.go SECRET ID TIMESTAMP SIGNATURES NOW < body
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

func isGenuine(secret, id, timestamp, signatures string, body []byte, now int64) bool {
	sent, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || now-sent > 300 || sent-now > 300 {
		return false
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return false
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	expected := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for _, given := range strings.Split(signatures, " ") {
		if hmac.Equal([]byte(given), []byte(expected)) {
			return true
		}
	}
	return false
}

func main() {
	body, _ := io.ReadAll(os.Stdin)
	now, _ := strconv.ParseInt(os.Args[5], 10, 64)
	if isGenuine(os.Args[1], os.Args[2], os.Args[3], os.Args[4], body, now) {
		fmt.Println("genuine")
	} else {
		fmt.Println("forged")
	}
}
