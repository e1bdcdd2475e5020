from .answers import (
    Answers as Answers,
)
from .answers import (
    DirectionRanks as DirectionRanks,
)
from .answers import (
    Outcomes as Outcomes,
)
from .answers import (
    Rankings as Rankings,
)
from .answers import (
    Scores as Scores,
)
from .benchmark import Benchmark as Benchmark
from .benchmark import Card as Card
from .forms import (
    Choice as Choice,
)
from .forms import (
    Gallery as Gallery,
)
from .forms import (
    Preference as Preference,
)
from .forms import (
    Quad as Quad,
)
from .forms import (
    Rated as Rated,
)
from .forms import (
    RetrievalDirection as RetrievalDirection,
)
from .forms import (
    Statement as Statement,
)
from .records import (
    BytesSource as BytesSource,
)
from .records import (
    Caption as Caption,
)
from .records import (
    FileSource as FileSource,
)
from .records import (
    Image as Image,
)
from .records import (
    PixelSource as PixelSource,
)
from .references import References as References
from .video_frames import Sampling as Sampling
from .videos import FrameFeatures as FrameFeatures
from .videos import FrameFolder as FrameFolder
from .videos import Video as Video
