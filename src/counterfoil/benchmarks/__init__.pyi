from .answers import (
    Answers as Answers,
    DirectionRanks as DirectionRanks,
    Outcomes as Outcomes,
    Rankings as Rankings,
    Scores as Scores,
)
from .benchmark import Benchmark as Benchmark, Card as Card
from .forms import (
    Choice as Choice,
    Gallery as Gallery,
    Preference as Preference,
    Quad as Quad,
    Rated as Rated,
    RetrievalDirection as RetrievalDirection,
    Statement as Statement,
)
from .records import (
    BytesSource as BytesSource,
    Caption as Caption,
    FileSource as FileSource,
    Image as Image,
    PixelSource as PixelSource,
)
from .references import References as References
from .videos import (
    FrameFeatures as FrameFeatures,
    FrameFolder as FrameFolder,
    Sampling as Sampling,
    Video as Video,
)
