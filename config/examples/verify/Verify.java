// java Verify.java SECRET ID TIMESTAMP SIGNATURES NOW < body
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.Base64;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

public class Verify {
  static boolean isGenuine(
      String secret, String id, String timestamp, String signatures, byte[] body, long now)
      throws Exception {
    if (!timestamp.matches("[0-9]{1,12}") || Math.abs(now - Long.parseLong(timestamp)) > 300) return false;
    byte[] key = Base64.getDecoder().decode(secret.replaceFirst("^whsec_", ""));
    Mac mac = Mac.getInstance("HmacSHA256");
    mac.init(new SecretKeySpec(key, "HmacSHA256"));
    mac.update((id + "." + timestamp + ".").getBytes(StandardCharsets.UTF_8));
    String expected = "v1," + Base64.getEncoder().encodeToString(mac.doFinal(body));
    for (String given : signatures.split(" "))
      if (MessageDigest.isEqual(given.getBytes(StandardCharsets.UTF_8), expected.getBytes(StandardCharsets.UTF_8)))
        return true;
    return false;
  }

  public static void main(String[] args) throws Exception {
    byte[] body = System.in.readAllBytes();
    boolean genuine = isGenuine(args[0], args[1], args[2], args[3], body, Long.parseLong(args[4]));
    System.out.println(genuine ? "genuine" : "forged");
  }
}
