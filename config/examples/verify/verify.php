<?php
// php verify.php SECRET ID TIMESTAMP SIGNATURES NOW < body

function is_genuine(string $secret, string $id, string $timestamp, string $signatures, string $body, int $now): bool
{
    if (!preg_match('/^\d+$/D', $timestamp) || abs($now - (int) $timestamp) > 300) {
        return false;
    }
    $key = base64_decode(preg_replace('/^whsec_/', '', $secret));
    $expected = 'v1,' . base64_encode(hash_hmac('sha256', "$id.$timestamp.$body", $key, true));
    foreach (explode(' ', $signatures) as $given) {
        if (hash_equals($expected, $given)) {
            return true;
        }
    }
    return false;
}

[, $secret, $id, $timestamp, $signatures, $now] = $argv;
$genuine = is_genuine($secret, $id, $timestamp, $signatures, stream_get_contents(STDIN), (int) $now);
echo $genuine ? "genuine\n" : "forged\n";
