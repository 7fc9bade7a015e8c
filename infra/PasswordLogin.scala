package tidemark

import java.nio.file.{Files, Paths}
import java.security.MessageDigest
import javax.security.sasl.AuthenticationException

import org.apache.hive.service.auth.PasswdAuthenticationProvider

/** Lets in whoever gives the user and the password of the file that the system property `tidemark.login` names.
  *
  * The file has one line for each. It is read at every login, so a new password needs no restart; without the file
  * nobody comes in. HiveServer2 calls this where `hive.server2.authentication` is CUSTOM.
  */
class PasswordLogin extends PasswdAuthenticationProvider {
  override def Authenticate(user: String, password: String): Unit = {
    val known = Files.readAllBytes(Paths.get(System.getProperty("tidemark.login")))
    if (!MessageDigest.isEqual(s"$user\n$password\n".getBytes("UTF-8"), known)) {
      throw new AuthenticationException("wrong user or password")
    }
  }
}
