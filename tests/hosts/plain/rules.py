"""The rules that apply to every view of the product's API."""

from rest_framework.permissions import BasePermission
from rest_framework.throttling import UserRateThrottle


class HasContract(BasePermission):
    """Allow users whose last name is not `Cancelled`."""

    message = "Your contract has ended"

    def has_permission(self, request, view):
        """Return False for users without a contract."""
        return getattr(request.user, "last_name", "") != "Cancelled"


class CountingThrottle(UserRateThrottle):
    """Count the requests of each user."""
