"""What testssl says of TLS as the front-end speaks it, with its defaults and with client certificates.

Usage: tls.py PLIMSOLL

Fails where testssl finds anything that is vulnerable, of severity MEDIUM or higher, or not A. The grade is not testssl's, which has
none before version 3.2: it follows SSL Labs' Server Rating Guide (2009q) from what testssl has found, and is told with its parts.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import parts

PORT, BACKEND = 9753, 9751
CONFIG = """
[[listener]]
address = "127.0.0.1:{port}"
{tls}
[[backend]]
address = "127.0.0.1:{backend}"
[admin]
address = "127.0.0.1:9759"
{clients}
"""
CLIENTS = """
[tls]
client_certificates = "required"
client_authorities = "{d}/ca.pem"
"""
# That a certificate of our own CA is in no log and names no place to ask whether it was revoked tells nothing of the front-end.
OF_OUR_CERTIFICATES = ("cert_revocation", "cert_crlDistributionPoints", "cert_ocspURL", "certificate_transparency",
                       "DNS_CAArecord", "cert_trust", "cert_chain_of_trust", "OCSP_stapling", "cert_extlifeSpan",
                       "cert_validityPeriod", "cert_expirationStatus", "HSTS", "HPKP", "security_headers", "banner_server")
# Clients choose among suites that are all good, as Mozilla's and Debian's recommendations have it: one without AES in hardware is better
# served by ChaCha20.
CHOSEN = ("cipher_order",)
SEVERE = ("MEDIUM", "HIGH", "CRITICAL", "FATAL")


def found(port, directory, name):
    """What testssl finds, by its names."""
    out = pathlib.Path(directory) / f"{name}.json"
    args = [shutil.which("testssl.sh") or "testssl", "--quiet", "--color", "0", "--warnings", "batch", "--nodns", "min", "--ip", "127.0.0.1",
            "--add-ca", f"{directory}/ca.pem", "--jsonfile", str(out), f"localhost:{port}"]
    done = subprocess.run(args, capture_output=True, text=True, timeout=900)
    if not out.exists():
        sys.exit(f"testssl has failed: {done.stdout}{done.stderr}")
    return {item["id"]: item for item in json.loads(out.read_text())}


def grade(findings):
    """The parts of the grade and the grade, by SSL Labs' guide: protocols 30 %, key exchange 30 %, ciphers 40 %."""
    offered = [name for name in ("SSLv2", "SSLv3", "TLS1", "TLS1_1", "TLS1_2", "TLS1_3")
               if findings.get(name, {}).get("finding", "").startswith("offered")]
    of_protocol = {"SSLv2": 0, "SSLv3": 80, "TLS1": 90, "TLS1_1": 95, "TLS1_2": 100, "TLS1_3": 100}
    scores = [of_protocol[name] for name in offered] or [0]
    protocols = (max(scores) + min(scores)) / 2
    # All suites of rustls use ECDHE with at least X25519 (as RSA of 3072 bits), AES-128, AES-256 or ChaCha20.
    secret = findings.get("PFS", findings.get("FS", {})).get("finding", "")
    exchange = 90 if secret.startswith("offered") else 0
    weak = [name for name in ("cipherlist_NULL", "cipherlist_aNULL", "cipherlist_EXPORT", "cipherlist_LOW", "cipherlist_3DES_IDEA",
                              "cipherlist_AVERAGE") if not findings[name]["finding"].startswith("not offered")]
    ciphers = 0 if weak else (100 + 80) / 2
    total = 0.3 * protocols + 0.3 * exchange + 0.4 * ciphers
    letter = "A" if total >= 80 and min(scores) >= 100 and not weak and exchange else "below A"
    return letter, f"{total:.0f} = 0.3 x {protocols:.0f} (protocols: {' '.join(offered)}) + 0.3 x {exchange} + 0.4 x {ciphers:.0f}"


def renegotiates():
    """Whether the front-end begins a second handshake on a connection whose client asks for one."""
    args = ["openssl", "s_client", "-msg", "-tls1_2", "-connect", f"127.0.0.1:{PORT}"]
    with subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as client:
        time.sleep(1)
        client.stdin.write("R\n")
        client.stdin.flush()
        time.sleep(2)
        client.kill()
        said = client.stdout.read()
    if "RENEGOTIATING" not in said:
        sys.exit(f"openssl did not ask for another handshake: {said}")
    handshakes = said.count(", ServerHello\n")
    print(f"renegotiation: asked for, and {handshakes - 1} further handshakes begun")
    return handshakes != 1


def judge(name, findings):
    """Tells what was found; whether that is good."""
    bad = [item for key, item in findings.items()
           if item["severity"] in SEVERE and not key.startswith(OF_OUR_CERTIFICATES + CHOSEN)]
    renegotiation = {key: findings[key]["finding"] for key in findings if key.startswith("secure_") and "reneg" in key}
    letter, why = grade(findings)
    print(f"{name}: {len(findings)} findings, {len(bad)} of them of severity MEDIUM or higher; grade {letter} ({why})")
    for key, finding in renegotiation.items():
        print(f"  {key}: {finding}")
    for item in bad:
        print(f"  {item['severity']} {item['id']}: {item['finding']}")
    return not bad and letter == "A"


def main(plimsoll):
    with tempfile.TemporaryDirectory() as directory:
        parts.certificates(directory)
        parts.backend(BACKEND)
        good = True
        for name, clients in (("defaults", ""), ("client certificates", CLIENTS.format(d=directory))):
            tls = parts.TLS.format(d=directory)
            config = CONFIG.format(port=PORT, tls=tls, backend=BACKEND, clients=clients)
            with parts.front_end(plimsoll, directory, config, ("127.0.0.1", PORT)):
                good &= judge(name, found(PORT, directory, name))
                good &= bool(clients) or not renegotiates()
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
