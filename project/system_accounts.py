"""The system account of the embedded PostgreSQL, which refuses to run as root."""

import os
import pwd
import stat
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

SERVER_USER = "pgserver"


class Account(NamedTuple):
    """The numeric ids of a system account."""

    uid: int
    gid: int


def find_server_account(data: Path) -> Account | None:
    """Return the account for the server, or None if it can run as the current user.

    For root this is the owner of existing data, so that it stays readable for that user.
    """
    if os.geteuid() != 0:
        return None
    if data.exists() and (owner := data.stat()).st_uid != 0:
        return Account(owner.st_uid, owner.st_gid)
    entry = _find_account(SERVER_USER) or _create_account(SERVER_USER) or pwd.getpwnam("nobody")
    return Account(entry.pw_uid, entry.pw_gid)


def build_run_arguments(account: Account | None) -> dict[str, Any]:
    """Return the arguments of `subprocess.run` that run a program as this account."""
    if account is None:
        return {}
    return {"user": account.uid, "group": account.gid, "extra_groups": []}


def give_folder(folder: Path, account: Account) -> None:
    """Give a folder to the account and let it pass through the folders above."""
    os.chown(folder, account.uid, account.gid)
    _allow_traversal(folder, account)


def make_private_dir(folder: Path, account: Account | None) -> None:
    """Create a folder that only the account may write; refuse one of another user."""
    uid = account.uid if account else os.geteuid()
    if not folder.exists():
        folder.mkdir(mode=0o700)
        if account:
            os.chown(folder, account.uid, account.gid)
    if folder.lstat().st_uid != uid or not stat.S_ISDIR(folder.lstat().st_mode):
        raise PermissionError(13, f"Permission denied: {folder} belongs to another user")


def allow_execution(programs: Path, account: Account) -> None:
    """Make the programs below a folder executable for the account if they are not."""
    if _can_execute(programs / "bin" / "postgres", account):
        return
    _allow_traversal(programs, account)
    for path in (programs, *programs.rglob("*")):
        mode = path.stat().st_mode
        path.chmod(mode | stat.S_IROTH | (stat.S_IXOTH if mode & stat.S_IXUSR else 0))


def _can_execute(program: Path, account: Account) -> bool:
    try:
        command = [str(program), "--version"]
        return not subprocess.run(
            command, capture_output=True, cwd="/", check=False, **build_run_arguments(account)
        ).returncode
    except PermissionError:
        return False


def _allow_traversal(folder: Path, account: Account) -> None:
    """Let the account pass through the parent folders, without letting it list them."""
    for parent in folder.parents:
        info = parent.stat()
        if info.st_uid == account.uid or info.st_mode & stat.S_IXOTH:
            continue
        parent.chmod(info.st_mode | stat.S_IXOTH)


def _find_account(name: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


def _create_account(name: str) -> pwd.struct_passwd | None:
    try:
        subprocess.run(["useradd", "--system", name], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return _find_account(name)
