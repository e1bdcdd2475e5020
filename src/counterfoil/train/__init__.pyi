from .loop import Fitted as Fitted, fit as fit
from .objectives import with_heads as with_heads
from .recipes import Recipe as Recipe, read as read
from .saving import Monitors as Monitors, Saving as Saving
from .validation import ForgettingGuard as ForgettingGuard, interpolate as interpolate
