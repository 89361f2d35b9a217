"""Users of the host project, whatever its user model is."""

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group


def make_user(name, **fields):
    """Create a user. The name becomes an email address if people log in with one."""
    users = get_user_model()
    login = f"{name}@example.org" if users.USERNAME_FIELD == "email" else name
    return users.objects.create_user(**{users.USERNAME_FIELD: login}, **fields)


def make_reviewer(name):
    """Create a member of staff in the group that the app creates."""
    user = make_user(name, is_staff=True)
    user.groups.add(Group.objects.get(name="Support reviewer"))
    return user
