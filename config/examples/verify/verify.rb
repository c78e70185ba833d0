# ruby verify.rb SECRET ID TIMESTAMP SIGNATURES NOW < body
require 'base64'
require 'openssl'

def genuine?(secret, id, timestamp, signatures, body, now)
  return false unless timestamp.match?(/\A\d+\z/) && (now - timestamp.to_i).abs <= 300

  key = Base64.decode64(secret.delete_prefix('whsec_'))
  digest = OpenSSL::HMAC.digest('SHA256', key, "#{id}.#{timestamp}.".b + body)
  expected = "v1,#{Base64.strict_encode64(digest)}"
  signatures.split.any? { |given| OpenSSL.secure_compare(given, expected) }
end

secret, id, timestamp, signatures, now = ARGV
puts genuine?(secret, id, timestamp, signatures, $stdin.binmode.read, now.to_i) ? 'genuine' : 'forged'
