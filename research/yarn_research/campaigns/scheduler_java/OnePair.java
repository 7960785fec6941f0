package scheduling;

import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.KeyPairGeneratorSpi;
import java.security.Provider;
import java.security.ProviderException;
import java.security.SecureRandom;
import java.security.Security;

/**
 * One pair of RSA keys for all ResourceManagers of this program.
 *
 * Each start makes one for masters with HTTPS, which there are none of: it was most of the time of a start.
 */
public final class OnePair extends KeyPairGeneratorSpi {
  private static final int BITS = 2048;
  private static KeyPair pair;

  /** Let this answer whenever keys of RSA are generated. */
  static void install() {
    Provider provider = new Provider("OnePair", "1", "one pair of keys") { };
    provider.put("KeyPairGenerator.RSA", OnePair.class.getName());
    Security.insertProviderAt(provider, 1);
  }

  @Override
  public void initialize(int bits, SecureRandom random) {
    if (bits != BITS) {
      throw new ProviderException("keys of " + bits + " bits are not known here");
    }
  }

  @Override
  public KeyPair generateKeyPair() {
    synchronized (OnePair.class) {
      if (pair == null) {
        try {
          KeyPairGenerator generator = KeyPairGenerator.getInstance("RSA", "SunRsaSign");
          generator.initialize(BITS);
          pair = generator.generateKeyPair();
        } catch (GeneralSecurityException problem) {
          throw new ProviderException(problem);
        }
      }
      return pair;
    }
  }
}
