// dotnet run Verify.cs SECRET ID TIMESTAMP SIGNATURES NOW < body
using System.Security.Cryptography;
using System.Text;

using var input = new MemoryStream();
Console.OpenStandardInput().CopyTo(input);
var genuine = IsGenuine(args[0], args[1], args[2], args[3], input.ToArray(), long.Parse(args[4]));
Console.WriteLine(genuine ? "genuine" : "forged");

static bool IsGenuine(string secret, string id, string timestamp, string signatures, byte[] body, long now)
{
    if (!long.TryParse(timestamp, out var sent) || sent < now - 300 || sent > now + 300) return false;
    var key = Convert.FromBase64String(secret.StartsWith("whsec_") ? secret[6..] : secret);
    byte[] signed = [.. Encoding.UTF8.GetBytes($"{id}.{timestamp}."), .. body];
    var expected = Encoding.UTF8.GetBytes("v1," + Convert.ToBase64String(HMACSHA256.HashData(key, signed)));
    return signatures.Split(' ').Any(given =>
        CryptographicOperations.FixedTimeEquals(Encoding.UTF8.GetBytes(given), expected));
}
