"""Numbers of variable length, as traces and protocol buffers have them: seven bits a byte, the lowest first."""


def varint(data, at):
    """Returns the number at `at`, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at
